"""The files of a tokenizer for transformers."""

from __future__ import annotations

from taskhint.system.files import json_bytes
from taskhint.tasks.vocab import PAD, Vocab

UNKNOWN = "<unknown>"


def tokenizer_files(vocab: Vocab) -> dict[str, bytes]:
    """Files of a tokenizer that takes words between spaces: "5 17 43 ⊥".

    Any other word gets an id that the model has no vector for, and refuses.
    """
    words = [*vocab.words(range(vocab.size)), UNKNOWN]
    pads = [word for word in words if word == PAD]
    added = {"single_word": False, "lstrip": False, "rstrip": False}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": words.index(word), "content": word, **added}
            | {"normalized": False, "special": True}
            for word in (*pads, UNKNOWN)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(words)},
            "unk_token": UNKNOWN,
        },
    }
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 1 << 30,
        "padding_side": "left",
        "clean_up_tokenization_spaces": False,
        "unk_token": UNKNOWN,
        **({"pad_token": PAD} if pads else {}),
    }
    return {
        "tokenizer.json": json_bytes(tokenizer),
        "tokenizer_config.json": json_bytes(settings),
    }
