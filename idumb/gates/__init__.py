"""What idumb checks itself on bytes that no builder can still change: commands, conditions, symbols, built-in gates.

`checks` runs commands (`shell_command`) and `conditions` in the proof checkout, for which `prepare` installs what they
need, each with an environment of its own (`check_environment`, `toolchains`); `controls` runs them on the tree before
the work.
`registry` asks the gates that concern a change: `limits`, `syntax`, `checkers`, `specification`, `design`,
`change_class`, and the project's own (`own_gate`).
"""
