"""Many runs: on this machine's cores."""
