"""Texts to fit the table to: the definitions and examples of WordNet 3.0."""
import hashlib
import re
from pathlib import Path


def lines(folder):
    """All texts: "word, other word: its definition", and each example of three or more words."""
    for part in ("adj", "adv", "noun", "verb"):
        for line in (Path(folder) / f"data.{part}").read_text("latin1").splitlines():
            if line.startswith("  ") or " | " not in line:  # the license, or no definition
                continue
            head, gloss = line.rstrip().split(" | ", 1)
            fields = head.split()
            words = [fields[4 + 2 * i].split("(")[0].replace("_", " ") for i in range(int(fields[3], 16))]
            definition, *examples = re.split(r'; "', gloss)
            yield f"{', '.join(words[:2])}: {definition.strip()}"
            for example in examples:
                example = example.strip('" ;')
                if len(example.split()) > 2:
                    yield example


def sample(folder, n):
    """The n lines with the lowest hashes, which are the same in every run."""
    return sorted(set(lines(folder)), key=lambda line: hashlib.sha256(line.encode()).digest())[:n]
