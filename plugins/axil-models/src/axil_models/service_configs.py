"""The settings of adapters for remote models: address, key, time limits."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, Literal, TypeVar, cast, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from axil import ConfigError, Problem
from axil.plugin import Address, Secret, decode_config
from axil_models.prices import Prices
from axil_models.requests import Request
from axil_models.retries import Retry
from axil_models.settings import COMMON, checked_settings

Modality = Literal["text", "image", "file", "audio"]


class ServiceConfig(BaseModel):
    """The address of a service, and how it is called."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, description="The model's name, as the service calls it.")
    api_key: Secret | None = Field(
        default=None,
        description="The key: {env: NAME} or ${NAME}; without it the usual variable's.",
        json_schema_extra={"x-axil-usual": True},
    )
    base_url: Address | None = Field(
        default=None,
        description="Where the service is; without it its usual place.",
    )
    headers: dict[str, str] = Field(
        default_factory=dict[str, str], description="Further headers of every request."
    )
    timeout_seconds: float = Field(
        default=600, gt=0, description="The longest silence, before a reply and within it."
    )
    connect_timeout_seconds: float = Field(
        default=10, gt=0, description="How long a connection may take to be made."
    )
    retry: Retry = Field(default=Retry(), description="When it is asked again.")

    @field_validator("base_url")
    @classmethod
    def _is_a_url(cls, given: str | None) -> str | None:
        if given:
            parts = urlsplit(given)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("expected a URL as https://host/v1")
        return given or None


class RemoteModelConfig(ServiceConfig):
    """A model of a service."""

    settings: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        description="Settings of every request: temperature, …; null leaves one out.",
    )
    modalities: tuple[Modality, ...] | None = Field(
        default=None, description="The kinds of input; without it all that the API can carry."
    )
    prices: Prices | None = Field(
        default=None,
        description="The prices of a million tokens: {input, output, cached, cache_write}.",
    )

    @model_validator(mode="before")
    @classmethod
    def _has_settings_inside(cls, given: object) -> object:
        outside = [name for name in COMMON if isinstance(given, Mapping) and name in given]
        if name := next((each for each in outside if each not in cls.model_fields), ""):
            raise ValueError(f"{name} is a setting of requests; write settings: {{{name}: …}}")
        return cast("object", given)

    @field_validator("settings")
    @classmethod
    def _in_range(cls, settings: dict[str, Any]) -> dict[str, Any]:
        checked_settings(settings, "settings")
        return settings

    def settings_for(self, request: Request, refused: Mapping[str, str]) -> dict[str, Any]:
        """Return the settings of one request.

        Raises: ConfigError (AX806): one is in ``refused``, which says what to do instead.
        """
        settings = {**self.settings, **request.settings}
        for name in sorted(refused.keys() & settings.keys()):
            message, hint = "this setting cannot be used here.", refused[name] or "Remove it."
            raise ConfigError(Problem("AX806", f"settings.{name}", message, hint))
        if not request.tools:
            for name in ("tool_choice", "parallel_tool_calls"):
                settings.pop(name, None)
        return settings


Config = TypeVar("Config", bound=ServiceConfig)


def service_config(
    kind: type[Config],
    name: object,
    api_key: object,
    base_url: str | None,
    more: Mapping[str, object],
) -> Config:
    """Make a config from a constructor's arguments: a config, or its entries, three by position;
    MASFactory's ``model_name`` (or ``model``) and ``invoke_settings`` too.

    Raises: ConfigError: all that is wrong with it.
    """
    if isinstance(name, kind):
        return name
    given = dict(more)
    settings = given.pop("invoke_settings", None)
    if given.get("settings") is None:
        given["settings"] = settings
    name = name or given.pop("model_name", None) or given.pop("model", None)
    data = {"name": name, "api_key": api_key, "base_url": base_url, **given}
    kept = {k: v for k, v in data.items() if v is not None or _means_none(kind, k)}
    return decode_config(kind, kept)


def _means_none(kind: type[BaseModel], name: str) -> bool:
    """Return whether None is a value of a setting, and not its default."""
    field = kind.model_fields.get(name)
    return (
        field is not None and field.default is not None and NoneType in get_args(field.annotation)
    )
