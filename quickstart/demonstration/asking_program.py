"""The program of the demonstration: it asks for a name, a hidden passphrase, and yes or no.

It does not know Holdline.
"""

import getpass
import sys


def main() -> int:
    """Ask the three questions; returns 0 if the last answer was yes, else 1."""
    name = input("What is your name? ")
    passphrase = getpass.getpass("Choose a passphrase: ")
    answer = input(
        f"Hello {name}, your passphrase has {len(passphrase)} characters. Keep it? [y/n] "
    )
    sys.stdout.write("Kept.\n" if answer.strip().lower() in {"y", "yes"} else "Forgotten.\n")
    return 0 if answer.strip().lower() in {"y", "yes"} else 1


if __name__ == "__main__":
    sys.exit(main())
