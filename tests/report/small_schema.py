"""The keywords of JSON Schema that docs/report.schema.json uses; an unknown one is an error.

Not a validator for other schemas: it keeps the shipped one tested where `jsonschema` is missing.
"""

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}
SILENT = {"$schema", "$defs", "title", "description"}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def problems(value, schema, root, at="$"):
    """Yields one line for each place where the value is not what the schema says."""
    def inner(part, value_of_part, place):
        return problems(value_of_part, part, root, place)

    for keyword, given in schema.items():
        if keyword in SILENT:
            continue
        if keyword == "$ref":
            yield from inner(root["$defs"][given.removeprefix("#/$defs/")], value, at)
        elif keyword == "type":
            if not is_type(value, given):
                yield f"{at}: {value!r} is no {given}"
                return
        elif keyword == "const" and value != given or keyword == "enum" and value not in given:
            yield f"{at}: {value!r} is not {given!r}"
        elif keyword == "required":
            yield from (f"{at}: no {name}" for name in given if name not in value)
        elif keyword == "properties":
            for name in given.keys() & value.keys():
                yield from inner(given[name], value[name], f"{at}.{name}")
        elif keyword == "additionalProperties":
            for name in value.keys() - schema.get("properties", {}).keys():
                yield from inner(given, value[name], f"{at}.{name}")
        elif keyword == "propertyNames":
            for name in value:
                yield from inner(given, name, f"{at}.{name}")
        elif keyword == "items":
            for n, item in enumerate(value):
                yield from inner(given, item, f"{at}[{n}]")
        elif keyword in ("minItems", "maxItems", "minimum"):
            size = value if keyword == "minimum" else len(value)
            if (size > given) if keyword == "maxItems" else (size < given):
                yield f"{at}: {keyword} {given}"
        elif keyword in ("anyOf", "oneOf"):
            fits = sum(not list(inner(choice, value, at)) for choice in given)
            if fits == 0 or (keyword == "oneOf" and fits != 1):
                yield f"{at}: {fits} of the choices of {keyword} fit"
        elif keyword not in ("const", "enum"):
            raise AssertionError(f"the schema uses {keyword}, which small_schema.py does not know")
