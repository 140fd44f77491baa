#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# One table out of several runs:
#   table.sh 'weft=a.md,b.log' 'siw 7.2=siw.md' > rows.md
# A file is what weftspec printed, --markdown or its list of cases; the first one must be a
# --markdown run of the whole table. Of several runs of one peer the worst verdict counts, and a
# row is skipped only where all skipped it.
set -eu
names=() columns=()
for pair; do
	names+=("${pair%%=*}")
	columns+=("${pair#*=}")
done
printf '| row | RFC | severity | requirement |'
printf ' %s |' "${names[@]}"
printf '\n|---|---|---|---|'
printf -- '---|%.0s' "${names[@]}"
printf '\n'
args=()
for k in "${!columns[@]}"; do
	args+=("nf=$((k + 1))")
	IFS=, read -ra files <<<"${columns[k]}"
	args+=("${files[@]}")
done
awk -F' [|] ' '
	function rank(v) {
		return index("no case,skipped,pass,divergent,fail,crash", v)
	}
	function note(id, v) {
		if (!((id, nf) in verdict) || rank(substr(v, 1, 4)) > rank(substr(verdict[id, nf], 1, 4)))
			verdict[id, nf] = v
	}
	/^\| (MPA|ENH|DDP|RDM|EXT|SEC)-/ {
		id = substr($1, 3)
		if (!(id in what)) {
			order[++n] = id
			rfc[id] = $2
			sev[id] = $3
			text = $5
			for (i = 6; i <= NF; i++)
				text = text " | " $i
			sub(/ \|$/, "", text)
			what[id] = text
		}
		note(id, $4)
	}
	/^(pass|divergent|fail|skipped|crash) +(MPA|ENH|DDP|RDM|EXT|SEC)-/ {
		split($0, word, /[ \/@]+/)
		note(word[2], word[1])
	}
	END {
		for (i = 1; i <= n; i++) {
			id = order[i]
			printf "| %s | %s | %s | %s |", id, rfc[id], sev[id], what[id]
			for (k = 1; k <= nf; k++)
				printf " %s |", (id, k) in verdict ? verdict[id, k] : "no case"
			printf "\n"
		}
	}' "${args[@]}"
