#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# One table out of several runs' --markdown output:
#   table.sh 'weft=weft.md' 'siw 7.2=siw.md' > rows.md
set -eu
names=() files=()
for pair; do
	names+=("${pair%%=*}")
	files+=("${pair#*=}")
done
printf '| row | RFC | severity | requirement |'
printf ' %s |' "${names[@]}"
printf '\n|---|---|---|---|'
printf -- '---|%.0s' "${names[@]}"
printf '\n'
awk -F' [|] ' '
	FNR == 1 { nf++ }
	/^\| (MPA|ENH|DDP|RDM|EXT|SEC)-/ {
		id = substr($1, 3)
		if (nf == 1) { order[++n] = id; rfc[id] = $2; sev[id] = $3 }
		text = $5; for (i = 6; i <= NF; i++) text = text " | " $i
		sub(/ \|$/, "", text)
		what[id] = text
		verdict[id, nf] = $4
	}
	END {
		for (i = 1; i <= n; i++) {
			id = order[i]
			printf "| %s | %s | %s | %s |", id, rfc[id], sev[id], what[id]
			for (k = 1; k <= nf; k++) printf " %s |", verdict[id, k]
			printf "\n"
		}
	}' "${files[@]}"
