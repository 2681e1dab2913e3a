# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks answers against docs/openapi.json; supports the parts of OpenAPI 3.0 that the file
uses."""

import json
import os
import re

PAGE = os.path.join(os.environ['WEIR_DATA'], '../../docs/openapi.json')
KNOWN = {'type', 'properties', 'required', 'additionalProperties', 'items', 'enum', '$ref', 'oneOf',
         'nullable', 'minimum', 'maximum', 'pattern', 'format', 'description'}
TYPES = {'object': dict, 'array': list, 'string': str, 'boolean': bool, 'integer': int,
         'number': (int, float)}


class Contract:
    def __init__(self):
        with open(PAGE, encoding='utf-8') as file:
            self.file = json.load(file)
        self.seen = set()

    def operations(self):
        return {(path, method.upper()) for path, item in self.file['paths'].items()
                for method in item}

    def _resolve(self, thing):
        if '$ref' not in thing:
            return thing
        at = self.file
        for part in thing['$ref'].removeprefix('#/').split('/'):
            at = at[part]
        return at

    def _operation(self, method, path):
        for template, item in self.file['paths'].items():
            regex = re.sub(r'\\\{path\\\}', '.+', re.sub(r'\\\{id\\\}', '[^/]+', re.escape(template)))
            if re.fullmatch(regex, path) and method.lower() in item:
                return template, item[method.lower()]
        raise AssertionError(f'{method} {path} is not in {PAGE}')

    def check(self, method, path, answer):
        """Checks that an answer (status, headers, body) to a request is as the file describes."""
        status, headers, body = answer
        path, _, query = path.partition('?')
        template, operation = self._operation(method, path)
        names = {parameter['name'] for parameter in operation.get('parameters', [])}
        if status != 400:
            assert {pair.split('=')[0] for pair in query.split('&') if pair} <= names, query
        response = operation['responses'].get(str(status))
        assert response, f'{method} {path} may not give {status}: {body}'
        (kind, content), = self._resolve(response)['content'].items()
        assert headers['content-type'].split(';')[0] == kind, headers
        if kind == 'application/json':
            self.validate(body, content['schema'], f'{method} {path} {status}')
        self.seen.add((template, method, status))

    def validate(self, value, schema, where):
        schema = self._resolve(schema)
        assert set(schema) <= KNOWN, set(schema) - KNOWN
        if value is None and schema.get('nullable'):
            return
        if 'oneOf' in schema:
            fits = 0
            for one in schema['oneOf']:
                try:
                    self.validate(value, one, where)
                    fits += 1
                except AssertionError:
                    pass
            assert fits == 1, (where, value, fits)
            return
        kind = schema['type']
        assert isinstance(value, TYPES[kind]), (where, value, kind)
        assert kind == 'boolean' or not isinstance(value, bool), (where, value, kind)
        if kind == 'object':
            self._validate_object(value, schema, where)
        for i, item in enumerate(value if kind == 'array' else []):
            self.validate(item, schema['items'], f'{where}[{i}]')
        assert value in schema.get('enum', [value]), (where, value)
        assert 'minimum' not in schema or value >= schema['minimum'], (where, value)
        assert 'maximum' not in schema or value <= schema['maximum'], (where, value)
        assert 'pattern' not in schema or re.search(schema['pattern'], value), (where, value)

    def _validate_object(self, value, schema, where):
        properties, more = schema.get('properties', {}), schema['additionalProperties']
        assert set(schema.get('required', [])) <= set(value), (where, value)
        for name, each in value.items():
            if name in properties:
                self.validate(each, properties[name], f'{where}.{name}')
            elif more is not True:
                assert more, (where, f'{name} is not in the file')
                self.validate(each, more, f'{where}.{name}')
