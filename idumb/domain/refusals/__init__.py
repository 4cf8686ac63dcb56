"""What every refusal tells besides its own words: what is blocked, and the ways on with their consequences."""
