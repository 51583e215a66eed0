"""The model card of an exported run."""

from __future__ import annotations

from taskhint.runs.run import Run

CARD = """\
---
library_name: transformers
tags: [taskhint, length-generalization]
pipeline_tag: text-generation
---
# {name}, seed {seed}

A decoder for the task `{task}`: {about}. It was made with taskhint, the software for studying
length generalization.

| setting | value |
|---|---|
| recipe | {name} ({scale} scale), seed {seed}, {step} updates |
| weights | {weights:,} |
| width, heads, blocks, MLP width | {width}, {heads}, {depth}, {mlp} |
| positions | {positions} |
| temperature | {temperature} |
| attention weights | {normaliser} |
| QK-norm | {qk_norm} |
| lengths of the recipe | {lengths} |
| heads | {tasks} |

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained(DIR, trust_remote_code=True)  # or: import taskhint.hf
tokenizer = AutoTokenizer.from_pretrained(DIR)
prompts = tokenizer(["{prompt}"], return_tensors="pt", return_token_type_ids=False)
print(tokenizer.decode(model.generate(**prompts, max_new_tokens={count})[0]))
```

`head=` chooses another head than that of the main task. Answers have no end mark: ask for as many
tokens as the answer has. `taskhint import DIR --out RUN` makes a run of this directory again, to
evaluate and to probe.
"""


def model_card(run: Run, weights: int) -> str:
    recipe, model, task = run.recipe, run.recipe.model, run.task
    prompt = task.worked_example()
    lengths = sorted(task.lengths.shares())
    return CARD.format(
        name=recipe.name,
        scale=recipe.scale,
        seed=recipe.seed,
        step=run.checkpoint.step,
        task=task.kind,
        about=task.about or "see its documentation",
        weights=weights,
        width=model.width,
        heads=model.heads,
        depth=model.depth,
        mlp=model.mlp_width or "none",
        positions=model.positions.kind,
        temperature=model.temperature.kind,
        normaliser=model.normaliser.kind,
        qk_norm="yes" if model.qk_norm else "no",
        lengths=f"{lengths[0]} to {lengths[-1]} ({task.length_is})",
        tasks=", ".join(f"`{each.kind}`" for each in recipe.tasks),
        prompt=" ".join(task.vocab.words(prompt)),
        count=len(task.solve(prompt)),
    )
