#!/usr/bin/env python3
"""Prints the steps of a recipe in packaging/, as a script of bash that a root folder can run:
  recipe-steps.py containerfile|github-action|gitlab|devcontainer|kubernetes
The script expects the file at $FILE, and its address and sum in $URL and $SHA256.
  recipe-steps.py workflow FILE   of the first job of a workflow of weft's own; the checkout is at $CHECKOUT
  recipe-steps.py targets FILE... prints the targets of the Makefile that the steps of workflows call
"""
import json
import re
import shlex
import sys
from pathlib import Path

import yaml

TOP = Path(__file__).parents[2]
PACKAGING = TOP / 'packaging'


def containerfile():
    text = re.sub(r'\\\n\s*', '', (PACKAGING / 'Containerfile').read_text())
    user, entry = None, []
    for line in text.splitlines():
        word, _, rest = line.partition(' ')
        if not line or word in ('#', 'FROM'):
            continue
        if word == 'RUN':
            yield rest + ' || exit'
        elif word == 'ADD':
            # A local archive is unpacked.
            pattern, to = rest.split()
            yield '[[ ${FILE##*/} = %s ]] && mkdir -p %s && tar -C %s -xf "$FILE" || exit' % (pattern, to, to)
        elif word == 'ENV':
            yield 'export ' + rest + ':$STANDINS'
        elif word == 'USER':
            user = rest
        elif word in ('ENTRYPOINT', 'CMD'):
            entry += json.loads(rest)
        else:
            sys.exit('Containerfile: ' + word)
    yield 'setpriv --reuid=%s --regid=%s --clear-groups --no-new-privs %s' % (user, user, shlex.join(entry))


def github_action():
    action = yaml.safe_load((PACKAGING / 'github-action/action.yml').read_text())
    assert action['runs']['using'] == 'composite'
    values = {'inputs.url': '$URL', 'inputs.sha256': '$SHA256'}
    assert {'inputs.' + name for name in action['inputs']} == set(values)
    yield 'mkdir /tmp/runner && export RUNNER_TEMP=/tmp/runner GITHUB_PATH=/tmp/runner/path'
    for step in action['runs']['steps']:
        assert step['shell'] == 'bash'
        env = {name: values[re.fullmatch(r'\$\{\{ (.*) \}\}', value)[1]]
               for name, value in step.get('env', {}).items()}
        words = ' '.join('%s="%s"' % one for one in env.items())
        yield 'env %s bash --noprofile --norc -eo pipefail -c %s' % (words, shlex.quote(step['run']))
    # What the runner does for the steps that follow.
    yield 'export PATH=$(paste -sd : "$GITHUB_PATH"):$PATH'


def gitlab():
    yield 'export WEFT_URL=$URL WEFT_SHA256=$SHA256'
    for line in yaml.safe_load((PACKAGING / 'gitlab-ci.yml').read_text())['.weft-run']['before_script']:
        # The runner looks at the status of each.
        yield line + ' || exit'


def devcontainer():
    folder = PACKAGING / 'devcontainer/weft-run'
    feature = json.loads((folder / 'devcontainer-feature.json').read_text())
    assert set(feature['options']) == {'url', 'sha256'}
    yield 'sh -c ' + shlex.quote((folder / 'install.sh').read_text())
    yield 'export PATH=' + feature['containerEnv']['PATH']


def kubernetes():
    pod = yaml.safe_load((PACKAGING / 'kubernetes.yaml').read_text())['spec']
    yield 'tar -C /opt -xf "$FILE" && export PATH=/opt/weft-run/bin:$PATH || exit'
    security = pod['securityContext']
    assert security['runAsNonRoot']
    who = 'setpriv --reuid=%d --regid=%d --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs' % (
        security['runAsUser'], security['runAsGroup'])
    for container in pod['containers']:
        assert container['securityContext'] == {
            'allowPrivilegeEscalation': False, 'readOnlyRootFilesystem': True, 'capabilities': {'drop': ['ALL']}}
        yield '%s timeout 120 %s & %s=$!' % (who, shlex.join(container['command']), container['name'])
    for container in pod['containers']:
        yield 'wait $' + container['name']


def jobs(file):
    return yaml.safe_load((TOP / '.github/workflows' / file).read_text())['jobs'].values()


def workflow(file):
    # A container without bash's path: GitHub runs sh -e.
    yield 'export CI=true && mkdir /tmp/workspace && cd /tmp/workspace'
    for step in next(iter(jobs(file)))['steps']:
        if 'run' in step:
            yield 'sh -e -c ' + shlex.quote(step['run'])
        elif step['uses'].startswith('actions/checkout@'):
            yield 'cp -R "$CHECKOUT/." .'
        else:
            sys.exit('workflow: ' + step['uses'])


def targets(file):
    for job in jobs(file):
        for step in job['steps']:
            words = shlex.split(step.get('run', ''))
            if words[:1] == ['make']:
                yield from words[1:]
            else:
                assert 'run' not in step or words[0] in ('apt-get', 'git'), step


RECIPES = {'containerfile': containerfile, 'github-action': github_action, 'gitlab': gitlab,
           'devcontainer': devcontainer, 'kubernetes': kubernetes}

name, *files = sys.argv[1:]
if name == 'targets':
    print('\n'.join(target for file in files for target in targets(file)))
else:
    print('set -eo pipefail')
    print('\n'.join(workflow(*files) if name == 'workflow' else RECIPES[name]()))
