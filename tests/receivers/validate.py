"""Validates JSON with a schema: validate.py SCHEMA FILE…. Prints one JSON line per file: the list of errors."""

import json
import pathlib
import sys

import jsonschema

schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
for name in sys.argv[2:]:
    # For alternatives (`anyOf`), report the error of the closest one.
    errors = validator.iter_errors(json.loads(pathlib.Path(name).read_text()))
    closest = [jsonschema.exceptions.best_match([error]) for error in errors]
    print(json.dumps([f"{error.json_path}: {error.message[:300]}" for error in closest]), flush=True)
