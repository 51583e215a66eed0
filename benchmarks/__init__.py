"""How fast it is: beside what people use, beside what the machine can do, and what it would cost
elsewhere.
"""
