"""Check the subject of a commit message.

    python tools/commit_subject.py .git/COMMIT_EDITMSG      as the commit-msg hook of .pre-commit-config.yaml calls it

A subject is imperative ("Add a kernel", not "Added" or "Adding"), has at most 72 characters and no full stop, and an
empty line separates it from the body. Subjects that git writes itself (merges, reverts, fixups) are not checked.
"""

import re
import sys
from pathlib import Path

LONGEST = 72
OF_GIT = re.compile(r"Merge |Revert \"|Reapply \"|fixup! |squash! |amend! ")
SCISSORS = re.compile(r"# -+ >8 -+$")
# Verbs whose imperative ends like a past tense or a participle.
IMPERATIVES = frozenset(
    (
        "bring", "embed", "exceed", "feed", "heed", "need", "ping", "proceed", "ring", "seed", "shed", "shred", "sing",
        "sling", "speed", "spring", "sting", "string", "succeed", "swing", "weed",
    )
)  # fmt: skip
IRREGULAR = frozenset(
    (
        "became", "began", "broke", "brought", "built", "came", "chose", "did", "drew", "fell", "forgot", "found",
        "gave", "got", "grew", "had", "held", "kept", "knew", "led", "left", "lost", "made", "meant", "met", "ran",
        "rewrote", "said", "saw", "sent", "shown", "spent", "stood", "taught", "thought", "told", "took", "was", "went",
        "were", "won", "wrote",
    )
)  # fmt: skip


def objections(message: str) -> list[str]:
    """Return what is wrong with a message, as git hands it to a hook: comments start with "#".

    Examples
    --------
    >>> objections("Add a kernel")
    []
    >>> objections("Added a kernel")
    ["subject starts with 'Added': write an imperative, such as 'Add' or 'Fix'"]
    """
    lines = []
    for line in message.splitlines():
        if SCISSORS.match(line):  # of git commit --verbose: what follows is the diff
            break
        if not line.startswith("#"):
            lines.append(line.rstrip())
    while lines and not lines[0]:
        del lines[0]
    if not lines:
        return []  # git refuses an empty message by itself
    subject = lines[0]
    if OF_GIT.match(subject):
        return []
    first, wrong = re.split(r"[\s:,]", subject.strip(), maxsplit=1)[0], []
    word = first.lower()
    if word in IRREGULAR or (re.search(r"[a-z](ed|ing)$", word) and word not in IMPERATIVES):
        wrong.append(f"subject starts with {first!r}: write an imperative, such as 'Add' or 'Fix'")
    if not first[:1].isupper() and first[:1].isalpha():
        wrong.append(f"subject starts with {first!r}: begin with a capital letter")
    if len(subject) > LONGEST:
        wrong.append(f"subject has {len(subject)} characters: write at most {LONGEST}, and the reason in the body")
    if subject.endswith("."):
        wrong.append("subject ends with a full stop: drop it")
    if len(lines) > 1 and lines[1]:
        wrong.append("no empty line between subject and body: add one")
    return wrong


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/commit_subject.py FILE")
    if found := objections(Path(sys.argv[1]).read_text(encoding="utf-8")):
        sys.exit("\n".join(found))
