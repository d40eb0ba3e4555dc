"""The texts of earlier rules, for the runs that were recorded under them: what has changed since. Pure."""

from agent_core.words.en import English


class English1(English):
    """Version 1, in every language.

    It did not show a value of the wrong type, nor one that provenance refused; it did show what the author had set.
    """

    current = "{kind}"
    left_out = "one of the properties {names}"
    other_keyword = "valid ({message})"
    authors_value = "{got}"
    own_arguments = "{got}"
    copied = "must be copied exactly from what the user or the author wrote"
    untrusted = "a value from elsewhere"
