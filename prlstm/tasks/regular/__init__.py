"""Regular languages: a finite automaton is enough."""
