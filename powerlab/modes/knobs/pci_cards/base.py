"""What knobs of PCI cards share: settings are ``ADDRESS.PART`` of every card, each part a file of its driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.files import can_write, write_value
from powerlab.modes.io.pci_cards import value
from powerlab.modes.io.permissions import Permission
from powerlab.sysroot import Sysroot


@dataclass(frozen=True, slots=True)
class Card:
    """One card.

    Attributes:
        address: of the PCI device.
        files: part of a setting's target → its file; a part that the card lacks is not there.
        range_mhz: the lowest and highest clock that may be asked for; zeros where there is no such part.
    """

    address: str
    files: Mapping[str, str]
    range_mhz: tuple[int, int] = (0, 0)


class CardKnob(ABC):
    """See the module; fulfils :class:`powerlab.modes.base.Knob`.

    Attributes:
        name: of the knob.
        meaning: what it sets.
        forms: names of modes.
        permissions: what the privileged helper may do.
        parts: of a setting's target, in the order in which they are read.
        cards_named: what a user calls such cards.
        none_there: what is said where there is no such card.
    """

    name: str
    meaning: str
    forms: tuple[Form, ...]
    permissions: tuple[Permission, ...]
    parts: tuple[str, ...]
    cards_named: str
    none_there: str

    @abstractmethod
    def cards(self, sysroot: Sysroot) -> Iterator[Card]:
        """Yield every card that has one of the parts at least."""

    @abstractmethod
    def words(self, sysroot: Sysroot, card: Card) -> Iterator[str]:
        """Yield how a card is set now, in words."""

    @abstractmethod
    def offered(self, sysroot: Sysroot, cards: Sequence[Card]) -> Iterator[str]:
        """Yield names of modes that are worth a try on these cards, of which there is one at least."""

    @abstractmethod
    def asked(self, sysroot: Sysroot, name: str) -> tuple[str, Iterable[tuple[Card, str, str]]] | None:
        """Return what each card does in a mode, and its settings: card, part and value; None: it is no mode of these.

        Raises:
            PowerlabError: one of the cards cannot be set so.
        """

    def put(self, sysroot: Sysroot, card: Card, part: str, text: str) -> None:
        """Write one part of a card, and make sure that it holds."""
        path = card.files[part]
        write_value(sysroot, path, text)
        if (found := value(sysroot, path)) != text:
            raise PowerlabError(f"{path} was set to {text} and reads {found or 'nothing'}; ask for that.")

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say how the cards are set, and whether this user may change that."""
        cards = list(self.cards(sysroot))
        if not cards:
            return probing.absent(self.name, self.none_there)
        detail = "; ".join(f"{card.address}: {', '.join(self.words(sysroot, card))}" for card in cards)
        if not all(can_write(sysroot, path) for card in cards for path in card.files.values()):
            return probing.denied(self.name, detail)
        return probing.available(self.name, detail)

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return a few modes of the cards that are here."""
        cards = list(self.cards(sysroot))
        parsed = [self.parse(sysroot, name) for name in self.offered(sysroot, cards)] if cards else []
        return [mode for mode in parsed if mode is not None]

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode that does the same to every card that can."""
        asked = self.asked(sysroot, name)
        if asked is None:
            return None
        what, wanted = asked
        settings = tuple(
            Setting(knob=self.name, target=f"{card.address}.{part}", value=text) for card, part, text in wanted
        )
        if not settings:
            raise PowerlabError(f"{name} is impossible: no {self.cards_named} here can be set so.")
        description = f"each {self.cards_named} {what}"
        return PowerMode(name=name, settings=settings, origin=ModeOrigin.INVENTED, description=description)

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return every part of every card."""
        return [
            Setting(knob=self.name, target=f"{card.address}.{part}", value=text)
            for card in self.cards(sysroot)
            for part in self.parts
            if (text := value(sysroot, card.files.get(part)))
        ]

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Make one setting, and make sure that it holds."""
        address, _, part = setting.target.rpartition(".")
        card = next((card for card in self.cards(sysroot) if card.address == address), None)
        if card is None or part not in card.files:
            parts = ", .".join(self.parts)
            raise PowerlabError(f"{self.name} has no setting {setting.target!r}; it has ADDRESS.{parts}.")
        self.put(sysroot, card, part, setting.value)

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: the driver starts with the card's own limits."""
        return False
