"""Texts to fit the table to: the definitions and examples of WordNet 3.0, and the titles of Debian's packages."""
import hashlib
import lzma
import re
from pathlib import Path

SHORTEST, LONGEST = 12, 400  # characters


def wordnet(folder):
    """For each meaning "word, other word: its definition", and each example."""
    for part in ("adj", "adv", "noun", "verb"):
        for line in (Path(folder) / f"data.{part}").read_text("latin1").splitlines():
            if line.startswith("  ") or " | " not in line:  # the license, or no definition
                continue
            head, gloss = line.split(" | ", 1)
            fields = head.split()
            words = [fields[4 + 2 * i].split("(")[0].replace("_", " ") for i in range(int(fields[3], 16))]
            yield f"{', '.join(words)}: " + re.sub(r'"[^"]*"', "", gloss).strip(" ;")
            yield from re.findall(r'"([^"]+)"', gloss)


def debian(translation):
    """The titles of all descriptions in a file Translation-en.xz. What follows them made the table worse."""
    for package in lzma.open(translation, "rt").read().split("\n\n"):
        yield package.partition("Description-en: ")[2].partition("\n")[0]


def read(wordnet_folder, translation):
    """All texts once, in the order of their hashes: it must not depend on where they come from."""
    found = set()
    for source in (wordnet(wordnet_folder), debian(translation)):
        found.update(" ".join(text.split()) for text in source)
    return sorted((t for t in found if SHORTEST <= len(t) <= LONGEST), key=lambda t: hashlib.sha256(t.encode()).digest())
