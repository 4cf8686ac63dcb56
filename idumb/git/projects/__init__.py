"""The ports of a project in a subfolder: whole trees and commits, with paths relative to the project's folder."""
