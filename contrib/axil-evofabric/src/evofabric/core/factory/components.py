"""Components: models that are made by their name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, InstanceOf


class ComponentFactory:
    """The components of the process, by name."""

    _registry: ClassVar[dict[str, type[Any]]] = {}

    @classmethod
    def create(cls, name: str, /, **kwargs: Any) -> Any:
        """Make a component. Raises: ValueError: there is none of that name."""
        found = cls._registry.get(name)
        if found is None:
            raise ValueError(
                f"Unknown component {name!r}. Import its module first; known: "
                f"{', '.join(sorted(cls._registry))}."
            )
        return found(**kwargs)

    @classmethod
    def register(cls, name: str, component_cls: type[Any]) -> None:
        """Register a class. Raises: ValueError: the name is taken."""
        if name in cls._registry:
            raise ValueError(f"Component name {name!r} already registered. Choose another name.")
        cls._registry[name] = component_cls

    @classmethod
    def is_registered(cls, name: str) -> bool:
        """Say whether a name is taken."""
        return name in cls._registry


class BaseComponent(BaseModel):
    """A model that ``ComponentFactory`` makes by its class's name, or ``__component_name__``.

    A later class of the same name replaces the earlier one.
    """

    model_config = ConfigDict(
        validate_assignment=True, arbitrary_types_allowed=True, protected_namespaces=()
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        registry = ComponentFactory._registry  # pyright: ignore[reportPrivateUsage]
        registry[getattr(cls, "__component_name__", None) or cls.__name__] = cls


class FactoryTypeAdapter:
    """Of an annotation: a component, or a mapping with its settings and ``__class_name__``."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> Any:
        def made(given: Any) -> Any:
            if not isinstance(given, dict):
                return given
            settings = dict(cast("dict[str, Any]", given))
            if "__class_name__" not in settings:
                raise ValueError(f"found {sorted(settings)}, expected the key __class_name__ too")
            return ComponentFactory.create(settings.pop("__class_name__"), **settings)

        return handler.generate_schema(Annotated[InstanceOf[source], BeforeValidator(made)])
