"""The page that shows a model thinking: a local server, its documents, and its front end."""
