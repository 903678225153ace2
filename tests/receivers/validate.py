"""Validates JSON by a schema: validate.py SCHEMA FILE…. Prints a line of JSON for each file: what is wrong, nothing where all is well."""

import json
import pathlib
import sys

import jsonschema

schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
for name in sys.argv[2:]:
    # Of several shapes that it may have, what is wrong with the one that it comes nearest to.
    errors = validator.iter_errors(json.loads(pathlib.Path(name).read_text()))
    nearest = [jsonschema.exceptions.best_match([error]) for error in errors]
    print(json.dumps([f"{error.json_path}: {error.message[:300]}" for error in nearest]), flush=True)
