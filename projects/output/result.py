"""The base of every result that a tool publishes.

A result is declared once, as a pydantic model, beside the service that makes it. The service
returns an instance; the tool publishes the schema of the model and the fields of the instance.
Texts in ``Field(description=...)`` and docstrings of models within models are published, too.
"""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Result(BaseModel):
    """A value that a service returns: validated when it is made, and frozen."""

    model_config = ConfigDict(frozen=True)


class CamelResult(Result):
    """A result whose fields are published in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)
