"""``python -m mqa_ref`` is the ``mqa-ref`` command."""

from mqa_ref.cli import main

if __name__ == "__main__":
    main()
