#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes manual pages and bash completion from the programs' own tables.

    pages.py man TEMPLATE TABLES [NAME=VALUE...]
    pages.py completion PROGRAM TABLES

TABLES is the JSON file that a program of apps/tables prints. In a template, @NAME@ stands for the
value NAME. A line @OPTIONS@, @COMMANDS@ or @TEXT@ stands for that part of TABLES, and a line @EXAMPLE@
for the file that the value EXAMPLE names. @FILE-KEYS@ and @MOUNT-KEYS@ stand for the keys of the file
and of a mount, @USERS-KEYS@ for those in the value of `users`, and so on; @OBJECTS@ for a section for
each other key whose value has keys.
"""

import json
import re
import sys

COMPLETION = '''# bash completion for {program}; generated from its options when it is built
{function} ()
{{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}

  # bash splits words at "=": an option, the sign and the value are three words.
  if [ "$word" = = ]; then
    word=''
  elif [ "$before" = = ]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  COMPREPLY=()
  case $before in
{cases}  esac
  mapfile -t COMPREPLY < <(compgen -W '{words}' -- "$word")
}}
complete -F {function} {program}
'''
COMMANDS = '''# bash completion for {program}; generated from its options when it is built
{function} ()
{{
  local word=${{COMP_WORDS[COMP_CWORD]}} words

  COMPREPLY=()
  case $COMP_CWORD:${{COMP_WORDS[1]}}:$word in
    1:*) words='{names}' ;;
{cases}    *)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -F {function} {program}
'''
FILES = '''    {options})
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -{kind} -- "$word")
      return
      ;;
'''
NOTHING = '''    {options})
      return
      ;;
'''


def escaped(text):
    """Returns the text in roff, which then prints it unchanged."""
    for char, name in (('\\', r'\e'), ('-', r'\-'), ('~', r'\(ti'), ('^', r'\(ha'), ("'", r'\(aq'),
                       ('`', r'\(ga')):
        text = text.replace(char, name)
    text = ''.join(c if ord(c) < 128 else f'\\[u{ord(c):04X}]' for c in text)
    return '\n'.join('\\&' + line if line.startswith('.') else line for line in text.split('\n'))


def bold(text):
    return rf'\fB{escaped(text)}\fR'


def italic(text):
    return rf'\fI{escaped(text)}\fR'


def prose(text):
    """Returns Markdown text in roff, with `code` in bold."""
    parts = text.split('`')
    return ''.join(bold(part) if i % 2 else escaped(part) for i, part in enumerate(parts))


def literal(lines):
    shortest = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    body = '\n'.join(escaped(line[shortest:]) for line in lines)
    return f'.PP\n.nf\n.RS 4\n{body}\n.RE\n.fi\n'


def man_options(table):
    """Formats the options. Groups, if the table has them, become headings with an example."""
    groups = {group['first']: group for group in table.get('groups', [])}
    out = []
    for option in table['options']:
        if not option['name']:
            continue
        if group := groups.get(option['name']):
            out.append(f'.SS {group["title"]}\n' + literal([group['example']]))
        names = [bold('-' + option['letter'])] if option['letter'] else []
        names.append(bold('--' + option['name']))
        value = '=' + italic(option['value']) if option['value'] else ''
        out.append(f'.TP\n{", ".join(names)}{value}\n{escaped(option["help"])}.\n')
    out.append(f'.TP\n{bold("-h")}, {bold("--help")}\nPrint this help and exit.\n')
    return ''.join(out)


def paragraph(text):
    """Returns a paragraph in roff. "Exit status: ..." begins a section."""
    before, colon, after = text.partition('Exit status: ')
    out = f'.PP\n{escaped(before.strip())}\n' if before.strip() else ''
    return out + (f'.SH EXIT STATUS\n{escaped(after)}\n' if colon else '')


def man_commands(table):
    """Formats the commands, each with its options and the text of its --help."""
    out = []
    for command in table['commands']:
        out.append(f'.SS {escaped(command["name"] + " " + command["words"])}\n')
        out.append(paragraph(command['summary'] + '.'))
        for block in re.findall(r'(?:^ .*\n)+|(?:^[^ \n].*\n)+', command['text'], re.M):
            lines = block.rstrip('\n').split('\n')
            out.append(literal(lines) if block.startswith(' ') else paragraph(' '.join(lines)))
        out += [f'.TP\n{bold("--" + option["name"])}'
                + ('=' + italic(option['value']) if option['value'] else '')
                + f'\n{escaped(option["help"])}.\n' for option in command['options']]
    return ''.join(out)


def man_text(table):
    """Returns the text after the options of --help in roff. A line that ends in a colon begins a
    section: its words before the first comma are the heading. Indented lines are kept as they are."""
    out = []
    for block in re.findall(r'(?:^ .*\n)+|(?:^[^ \n].*\n)+', table['text'], re.M):
        lines = block.rstrip('\n').split('\n')
        if block.startswith(' '):
            out.append(literal(lines))
        elif heading := re.fullmatch(r'([\w ]+)(?:, (.*))?:', lines[-1]):
            out.append(f'.SH {heading[1].upper()}\n')
            out.append(paragraph(heading[2][0].upper() + heading[2][1:] + ':') if heading[2] else '')
        else:
            out.append(paragraph(' '.join(lines)))
    return ''.join(out)


def man_keys(keys):
    out = []
    for key in keys:
        preset = f' (default {bold(key["default"])})' if key['default'] else ''
        out.append(f'.TP\n{bold(key["name"])}: {prose(key["form"])}{preset}\n{prose(key["help"])}.\n')
    return ''.join(out)


def key_tables(table):
    """Returns the tables of keys, by "file", "mount", or the key whose value has them."""
    return {prefix.strip('.') or root: keys for root in ('file', 'mount')
            for prefix, keys in table.get(root, {}).items()}


def man_object(name, keys):
    name = escaped(name)
    return f'.SH {name.upper()}\nThese are the keys in the value of\n.BR {name} .\n{man_keys(keys)}'


def man(template, table, values):
    with open(template, encoding='utf-8') as file:
        text = file.read()
    keys = key_tables(table)
    others = [name for name in keys if f'@{name.upper()}-KEYS@' not in text]
    made = {'OPTIONS': lambda: man_options(table), 'COMMANDS': lambda: man_commands(table),
            'TEXT': lambda: man_text(table),
            'OBJECTS': lambda: ''.join(man_object(name, keys[name]) for name in others),
            'EXAMPLE': lambda: literal(open(values['EXAMPLE'], encoding='utf-8').read().splitlines())}
    made.update((f'{name.upper()}-KEYS', lambda keys=keys: man_keys(keys)) for name, keys in keys.items())
    text = re.sub(r'^@([A-Z.-]+)@\n', lambda found: made[found[1]](), text, flags=re.M)
    text = re.sub(r'^(\.SH .*\n)\.PP\n', r'\1', text, flags=re.M)
    return re.sub(r'@([A-Z]+)@', lambda found: escaped(values[found[1]]), text)


def commands_completion(program, table):
    cases = ''.join(
        f"    *:{command['name']}:-*) words='"
        + ' '.join(sorted(['--help'] + ['--' + option['name'] for option in command['options']]))
        + "' ;;\n" for command in table['commands'])
    names = ' '.join([command['name'] for command in table['commands']] + ['--help', '--version'])
    return COMMANDS.format(program=program, function='_' + program.replace('-', '_'), names=names,
                           cases=cases)


def completion(program, table):
    if 'commands' in table:
        return commands_completion(program, table)
    kinds = {'f': [], 'd': [], '': []}
    words = ['--help']
    for option in table['options']:
        if not option['name']:
            continue
        words.append('--' + option['name'])
        if option['value']:
            kind = '' if not option['is-file'] else 'd' if option['value'] == 'DIR' else 'f'
            kinds[kind] += ['--' + option['name']]
            kinds[kind] += ['-' + option['letter']] if option['letter'] else []
    cases = ''.join((FILES if kind else NOTHING).format(options=' | '.join(names), kind=kind)
                    for kind, names in kinds.items() if names)
    return COMPLETION.format(program=program, function='_' + program.replace('-', '_'), cases=cases,
                             words=' '.join(sorted(words)))


def main():
    output, subject, tables, *values = sys.argv[1:]
    with open(tables, encoding='utf-8') as file:
        table = json.load(file)
    if output == 'man':
        sys.stdout.write(man(subject, table, dict(value.split('=', 1) for value in values)))
    else:
        sys.stdout.write(completion(subject, table))


if __name__ == '__main__':
    main()
