"""The demo's builder: a small program in the place of a coding agent.

idumb gives it the task as text on standard input and the task's id in the environment. It knows how to write five
pieces of a word counter. Its first try at T1-02 forgets that "The" and "the" are one word; only the feedback of the
failed check, which stands in the second prompt, makes it do better.
"""

from __future__ import annotations

import os
import pathlib
import sys

TOKENS = '''"""Split text into words."""

import re


def tokens(text):
    """Words of a text, in order; apostrophes stay inside a word."""
    return re.findall(r"[\\w']+", text)
'''

COUNT_FIRST_TRY = '''"""Count words."""

from collections import Counter

from words.tokens import tokens


def count(text):
    return Counter(tokens(text))
'''

COUNT = COUNT_FIRST_TRY.replace("tokens(text))", "word.lower() for word in tokens(text))")

TOP = '''"""The most frequent words."""

from words.count import count


def top(text, n=3):
    """(word, count) pairs; equal counts in alphabetical order."""
    return sorted(count(text).items(), key=lambda pair: (-pair[1], pair[0]))[:n]
'''

MAIN = '''"""python3 -m words FILE prints the most frequent words of a file."""

import pathlib
import sys

from words.top import top

if __name__ == "__main__":
    for word, number in top(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")):
        print(number, word)
'''

USAGE = """
## Usage

    python3 -m words FILE

prints the three most frequent words of a file, each with its count.
"""


def test(name: str, body: str) -> str:
    """A unittest module for `words.<name>`."""
    return (
        f"import unittest\n\nfrom words.{name} import {name}\n\n\n"
        f"class {name.title()}Test(unittest.TestCase):\n    def test_{name}(self):\n        {body}\n"
    )


def write(path: str, text: str) -> None:
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    print(f"wrote {path}")


def build(task: str, prompt: str) -> None:
    if task == "T1-01":
        write("words/tokens.py", TOKENS)
        write("tests/test_tokens.py", test("tokens", 'self.assertEqual(tokens("It\'s a dog."), ["It\'s", "a", "dog"])'))
    elif task == "T1-02":
        told = "AssertionError" in prompt
        print("the check failed last time: words differ by case" if told else "counting words")
        write("words/count.py", COUNT if told else COUNT_FIRST_TRY)
        write("tests/test_count.py", test("count", 'self.assertEqual(count("The the a")["the"], 2)'))
    elif task == "T1-03":
        write("words/top.py", TOP)
        write("tests/test_top.py", test("top", 'self.assertEqual(top("b a b", 1), [("b", 2)])'))
    elif task == "T1-04":
        write("words/__main__.py", MAIN)
    elif task == "T1-05":
        with open("README.md", "a", encoding="utf-8") as readme:
            readme.write(USAGE)
        print("extended README.md")
    else:
        sys.exit(f"I do not know how to build {task}")


if __name__ == "__main__":
    build(os.environ["IDUMB_TASK"], sys.stdin.read())
