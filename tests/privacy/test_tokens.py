"""A token is read if one of the keys at hand signed all of it, and otherwise not. There is nothing private in it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diminuendo import Contexts, Decision, Setting, make
from diminuendo.errors import InvalidInput, InvalidToken
from diminuendo.privacy import Tokens
from diminuendo.privacy import tokens as module
from diminuendo.types import LARGEST_INCARNATION, LARGEST_KEPT, DecisionId

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
TOKENS = Tokens({1: KEY})
decision_ids = st.builds(DecisionId, st.integers(0, LARGEST_KEPT), st.integers(0, LARGEST_INCARNATION))


def signed(spec: bytes, key: bytes = KEY) -> str:
    """As a forger with that key would write it, without our code."""
    mac = hashlib.blake2b(spec, digest_size=18, key=key, person=b"diminuendo token").digest()
    return base64.b64encode(spec + mac, altchars=b"-_").decode()


def spec_of(decision_id: DecisionId, version: int = 1, number: int = 1) -> bytes:
    return (
        bytes([version, number])
        + decision_id.round.to_bytes(8, "big")
        + decision_id.incarnation.to_bytes(8, "big")
    )


@given(decision_ids)
def test_there_and_back(decision_id: DecisionId) -> None:
    token = TOKENS.sign(decision_id)
    assert token == signed(spec_of(decision_id))  # the format is fixed: other programs read it
    assert re.fullmatch("[A-Za-z0-9_-]{48}", token)
    assert TOKENS.read(token) == decision_id
    assert TOKENS.sign(Decision(decision_id.round, (1, 2), (0, 1), 0.5, decision_id.incarnation)) == token


@given(decision_ids, st.integers(0, 287))
def test_no_bit_may_change(decision_id: DecisionId, bit: int) -> None:
    changed = bytearray(base64.urlsafe_b64decode(TOKENS.sign(decision_id)))
    changed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(InvalidToken):
        TOKENS.read(base64.urlsafe_b64encode(changed).decode())


@given(decision_ids, st.text() | st.integers(0, 60))
def test_cut_lengthened_and_other_texts(decision_id: DecisionId, other: str | int) -> None:
    token = TOKENS.sign(decision_id)
    wrong = [token[:other], token + token[:other]] if isinstance(other, int) else [other, token + other]
    for text in wrong:
        if text != token:
            with pytest.raises(InvalidToken):
                TOKENS.read(text)


def test_one_token_has_one_spelling() -> None:
    token = TOKENS.sign(DecisionId(3, 2**62))
    for other in (
        token + "=",
        token + "\n",
        " " + token,
        token.replace("-", "+"),
        token[:-1] + "\u0041\u0301",
        token.encode(),
    ):
        if other != token:
            with pytest.raises(InvalidToken):
                TOKENS.read(other)  # type: ignore[arg-type]  # a wrong type, too
    spelt = {last for last in map(chr, range(128)) if _reads(token[:-1] + last)}
    assert spelt == {token[-1]}


def _reads(token: str) -> bool:
    try:
        TOKENS.read(token)
    except InvalidToken:
        return False
    return True


@pytest.mark.parametrize(
    "forged",
    [
        signed(spec_of(DecisionId(5, 6)), OTHER),
        signed(spec_of(DecisionId(5, 6), number=2)),
        signed(spec_of(DecisionId(5, 6), number=2), OTHER),
        signed(spec_of(DecisionId(5, 6), version=0)),
        signed(spec_of(DecisionId(5, 6), version=2)),
        base64.urlsafe_b64encode(spec_of(DecisionId(5, 6)) + bytes(18)).decode(),
        base64.urlsafe_b64encode(
            spec_of(DecisionId(5, 6)) + hmac.new(KEY, spec_of(DecisionId(5, 6)), "sha256").digest()[:18]
        ).decode(),
        base64.urlsafe_b64encode(  # what the same key signs for another purpose
            spec_of(DecisionId(5, 6))
            + hashlib.blake2b(spec_of(DecisionId(5, 6)), digest_size=18, key=KEY).digest()
        ).decode(),
    ],
)
def test_forged_and_foreign_tokens(forged: str) -> None:
    with pytest.raises(InvalidToken) as result:
        TOKENS.read(forged)
    assert forged not in repr(result.value)
    assert result.value.__cause__ is None
    assert result.value.__context__ is None


def test_the_mac_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    token, compared = TOKENS.sign(DecisionId(1, 2)), []

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    class Watched:
        compare_digest: Callable[[bytes, bytes], bool] = staticmethod(watched)

    monkeypatch.setattr(module, "hmac", Watched)
    TOKENS.read(token)
    mac = base64.urlsafe_b64decode(token)[-18:]
    assert compared == [(mac, mac)]


def test_keys_rotate() -> None:
    old, both = Tokens({1: KEY}), Tokens({1: KEY, 2: OTHER}, sign_with=2)
    new, decision_id = Tokens({2: OTHER}), DecisionId(7, 8)
    assert (
        both.read(old.sign(decision_id))
        == both.read(both.sign(decision_id))
        == new.read(both.sign(decision_id))
        == decision_id
    )
    for reader, token in ((new, old.sign(decision_id)), (old, new.sign(decision_id))):
        with pytest.raises(InvalidToken):
            reader.read(token)


def test_keys_that_protect_nothing_are_refused_and_never_shown() -> None:
    for wrong in (
        {},
        {1: b"short"},
        {1: bytes(65)},
        {1: "x" * 32},
        {256: KEY},
        {-1: KEY},
        {"a": KEY},
        {True: KEY},
    ):
        with pytest.raises(InvalidInput):
            Tokens(wrong)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidInput, match="sign_with"):
        Tokens({1: KEY, 2: OTHER})
    with pytest.raises(InvalidInput, match="sign_with"):
        Tokens({1: KEY}, sign_with=2)
    shown = repr(Tokens({1: b"very secret" * 4}))
    assert "secret" not in shown
    for decision_id in (DecisionId(-1, 0), DecisionId(0, 2**63), DecisionId("1", 0)):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            TOKENS.sign(decision_id)


def test_the_token_of_a_private_context_says_nothing_of_it() -> None:
    """Two users whose contexts and slates differ, in the same round of the same life, have the same token."""
    one, other = Decision(4, (1, 2), None, None, 9), Decision(4, (7, 3), None, None, 9)
    assert one.to_json() != other.to_json()
    assert TOKENS.sign(one) == TOKENS.sign(other)


def test_a_learner_is_answered_with_tokens() -> None:
    setting = Setting(12, 3, 1_000, "click", contexts=Contexts(country=["DE", "FR"], private=True))
    tokens = Tokens({1: secrets.token_bytes(32)})
    learner = make("private", setting)
    decision = learner.choose(context={"country": "DE"})
    before = learner.snapshot()
    learner.observe(tokens.read(tokens.sign(decision)), 2)
    after = learner.snapshot()
    assert after != before
    learner.observe(
        tokens.read(tokens.sign(decision)), 1
    )  # the second time it looks the same, and changes nothing
    assert learner.snapshot() == after
    assert learner.unmatched_responses == 0
