#!/usr/bin/env python3
"""Prints what is in the portable file, in SPDX 2.3:
  sbom.py TREE NAME VERSION RDMA_CORE_SOURCE SYSROOT SECONDS
"""
import datetime
import hashlib
import json
import sys
from pathlib import Path

LICENSE = 'GPL-2.0-only OR BSD-2-Clause'


def digest(name, content):
    return {'algorithm': name.upper(), 'checksumValue': hashlib.new(name, content).hexdigest()}


def package(name, version, license_, purpose, verification=None):
    said = {
        'SPDXID': 'SPDXRef-Package-' + name, 'name': name, 'versionInfo': version,
        'downloadLocation': 'NOASSERTION', 'filesAnalyzed': verification is not None,
        'licenseConcluded': license_, 'licenseDeclared': license_, 'copyrightText': 'NOASSERTION',
        'primaryPackagePurpose': purpose,
    }
    if verification is not None:
        said['packageVerificationCode'] = {'packageVerificationCodeValue': verification}
    return said


def relation(of, kind, to):
    return {'spdxElementId': of, 'relationshipType': kind, 'relatedSpdxElement': to}


def main():
    tree, name, version, source, sysroot, seconds = sys.argv[1:]
    tree, files, sums = Path(tree), [], []
    for number, file in enumerate(sorted(f for f in tree.rglob('*') if f.is_file())):
        content = file.read_bytes()
        sha1 = digest('sha1', content)
        sums.append(sha1['checksumValue'])
        files.append({
            'SPDXID': 'SPDXRef-File-%d' % number, 'fileName': './' + str(file.relative_to(tree.parent)),
            'checksums': [sha1, digest('sha256', content)], 'copyrightText': 'NOASSERTION',
            'licenseConcluded': LICENSE, 'licenseInfoInFiles': ['NOASSERTION'],
        })
    verification = hashlib.sha1(''.join(sorted(sums)).encode()).hexdigest()
    glibc = Path(sysroot).name.split('_')[1]
    weft, headers, libc = 'SPDXRef-Package-weft-run', 'SPDXRef-Package-rdma-core', 'SPDXRef-Package-glibc'
    content = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    json.dump({
        'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT', 'name': name,
        'documentNamespace': 'urn:weft:%s:%s' % (name, content),
        'creationInfo': {
            'created': datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
                       .strftime('%Y-%m-%dT%H:%M:%SZ'),
            'creators': ['Organization: The weft developers', 'Tool: weft-sbom-' + version],
        },
        'packages': [
            package('weft-run', version, LICENSE, 'APPLICATION', verification),
            package('rdma-core', Path(source).name, 'GPL-2.0-only OR BSD-2-Clause', 'LIBRARY'),
            package('glibc', glibc, 'LGPL-2.1-or-later', 'LIBRARY'),
        ],
        'files': files,
        'relationships': [
            relation('SPDXRef-DOCUMENT', 'DESCRIBES', weft),
            # Headers that are compiled into the providers; libraries come with the system.
            relation(headers, 'BUILD_DEPENDENCY_OF', weft),
            relation(libc, 'RUNTIME_DEPENDENCY_OF', weft),
        ] + [relation(weft, 'CONTAINS', file['SPDXID']) for file in files],
    }, sys.stdout, indent=1, sort_keys=True)
    print()


main()
