"""The only training loop, its optimisers, and what a recipe costs."""
