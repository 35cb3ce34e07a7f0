"""Splits C++ text into what the compiler reads and what people read.

Not a parser: it knows comments, string literals (raw ones too) and character literals, which is all
that the checks of style and text need.
"""

import re

RAW_STRING = re.compile(r'(?:u8|u|U|L)?R"([^ ()\\\t\v\f\n]{0,16})\(')


def split(text):
    """Returns (code, comments), two lists with one entry for each line of `text`.

    In `code` comments are gone and literals are empty; in `comments` everything else is gone.
    """
    code, comments = [[]], [[]]

    def put(target, piece):
        other = comments if target is code else code
        for i, part in enumerate(piece.split("\n")):
            if i:
                target.append([])
                other.append([])
            target[-1].append(part)

    at = 0
    while at < len(text):
        rest = text[at:at + 2]
        raw = RAW_STRING.match(text, at)
        if rest == "//":
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            put(comments, text[at + 2:end])
        elif rest == "/*":
            end = text.find("*/", at + 2)
            end = len(text) if end < 0 else end + 2
            put(comments, text[at + 2:end].removesuffix("*/"))
        elif raw and (at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_")):
            closing = ")" + raw.group(1) + '"'
            end = text.find(closing, raw.end())
            end = len(text) if end < 0 else end + len(closing)
            put(code, '""' + "\n" * text.count("\n", at, end))
        elif text[at] == '"' or (text[at] == "'" and not (at and text[at - 1].isalnum())):
            end = at + 1
            while end < len(text) and text[end] not in (text[at], "\n"):
                end += 2 if text[end] == "\\" else 1
            end = min(end + 1, len(text)) if text[end:end + 1] != "\n" else end
            put(code, text[at] * 2)
        else:
            end = at + 1
            put(code, text[at])
        at = end
    return ["".join(line) for line in code], ["".join(line) for line in comments]
