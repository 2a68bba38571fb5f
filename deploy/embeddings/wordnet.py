"""Texts to fit the table on: the definitions and examples of WordNet 3.0."""
import hashlib
import re
from pathlib import Path


def lines(folder):
    """All of them: "word, other word: its definition" and, each alone, the examples of three words and more."""
    for part in ("adj", "adv", "noun", "verb"):
        for line in (Path(folder) / f"data.{part}").read_text("latin1").splitlines():
            if line.startswith("  ") or " | " not in line:  # the licence; or no definition
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
    """n of the lines, the same ones in every run: those with the lowest hashes."""
    return sorted(set(lines(folder)), key=lambda line: hashlib.sha256(line.encode()).digest())[:n]
