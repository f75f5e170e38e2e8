#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the kit on this machine's GPU: suites, receipts and, with --model, your own checkpoint's
# receipt and timed workloads. Needs an NVIDIA driver and a plain shell. A second start with the same
# arguments goes on after the last step that ended.
set -u
kit=$(cd "$(dirname "$0")" && pwd)

# What the estimate and the refusals rest on.
least_driver=580         # the first branch that serves CUDA 13
least_capability=80      # compute capability 8.0
least_free_mib=6144      # GPU suites: four layers of a 27B, two sessions at once
suite_seconds=3600       # one of them, at most
least_disk_mib=4096      # what the suites write and remove again
suites_minutes=10        # all GPU suites
golden_minutes=1         # an L3 receipt of the 11M model: 8 s on an H200
receipt_passes=15000     # passes in an L3 receipt: 256 s of a 27B on an H200; L2: a third of them
pass_overhead_ms=12      # launches of a 27B's pass
card_of_fp8_mib=32768    # below this much memory: keys and values in fp8, embedding mapped
id_limit=90000           # ids of the workloads' prompts, below the model's own limit

usage() {
  cat <<END
./run.sh [--model DIR [--drafter DIR]] [--out FOLDER] [--estimate]
  --model DIR     also: a receipt of your own EXL3 checkpoint, and timed workloads
  --drafter DIR   its DFlash or DFlash2 drafter; the receipt is of level L3 then, else L2
  --out FOLDER    where results go and a stopped run goes on [results]
  --estimate      says what would be done, and how long it takes, and stops
Exit code 0: all was shown; 1: something was shown to be wrong; 2: wrong usage; 3: not decided.
END
}

say() { printf '%s\n' "$*"; }
refuse() { # refuse CODE SENTENCE...
  code=$1
  shift
  printf 'run.sh: %s\n' "$*" >&2
  exit "$code"
}

model='' drafter='' out=results estimate=no
while [ $# -gt 0 ]; do
  case $1 in
    --model | --drafter | --out)
      [ -n "${2:-}" ] || refuse 2 "$1 needs a folder"
      case $1 in --model) model=$2 ;; --drafter) drafter=$2 ;; --out) out=$2 ;; esac
      shift 2
      ;;
    --estimate) estimate=yes; shift ;;
    --help | -h) usage; exit 0 ;;
    *) usage >&2; refuse 2 "unknown argument '$1'" ;;
  esac
done
[ -z "$drafter" ] || [ -n "$model" ] || refuse 2 "--drafter needs the --model it was made for"
for folder in "$model" "$drafter"; do
  [ -z "$folder" ] || [ -f "$folder/config.json" ] || refuse 2 "$folder holds no config.json"
done

hallmark=$kit/bin/hallmark
gpu_suites=$kit/bin/gpu_suites
golden=${HALLMARK_GOLDEN:-$kit/golden}
[ -f "$golden/models/scribe-11m-exl3/config.json" ] ||
  refuse 2 "no golden models in $golden; this kit was packed without them, set HALLMARK_GOLDEN to their folder"
HALLMARK_GOLDEN=$(cd "$golden" && pwd)
scribe=$HALLMARK_GOLDEN/models/scribe-11m-exl3
scribe_drafter=$HALLMARK_GOLDEN/models/scribe-11m-dflash2
CUDA_DEVICE_ORDER=PCI_BUS_ID # nvidia-smi's order
export HALLMARK_GOLDEN CUDA_DEVICE_ORDER

# ---- The machine, and whether it will do.
machine=$(uname -m)
packed_for=$(cat "$kit/MACHINE")
[ "$machine" = "$packed_for" ] ||
  refuse 3 "this kit is for $packed_for and the machine is $machine; run tools/kit --here in the source there"
smi=${HALLMARK_NVIDIA_SMI:-nvidia-smi}
command -v "$smi" >/dev/null 2>&1 ||
  refuse 3 "no NVIDIA driver was found ($smi is not there); install NVIDIA's driver, $least_driver or newer"
card=${CUDA_VISIBLE_DEVICES:-0}
card=${card%%,*}
ask() { "$smi" -i "$card" "--query-gpu=$1" --format=csv,noheader,nounits 2>&1 | head -n 1; }
name=$(ask name)
driver=$(ask driver_version)
case ${driver%%.*} in
  '' | *[!0-9]*) refuse 3 "the NVIDIA driver does not answer for GPU $card: ${driver:-$name}" ;;
esac
[ "${driver%%.*}" -ge "$least_driver" ] ||
  refuse 3 "the NVIDIA driver is $driver, expected $least_driver or newer, which serves CUDA 13; update it"
capability=$(ask compute_cap)
case $(printf %s "$capability" | tr -d .) in
  '' | *[!0-9]*) refuse 3 "the NVIDIA driver does not state a compute capability: $capability" ;;
esac
[ "$(printf %s "$capability" | tr -d .)" -ge "$least_capability" ] ||
  refuse 3 "$name has compute capability $capability, expected 8.0 or higher; CUDA_VISIBLE_DEVICES chooses another"
total=$(ask memory.total)
free=$(ask memory.free)
shared=no
case $total in
  '' | *[!0-9]*) # a GPU that works in the host's memory states none of its own
    shared=yes
    total=$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)
    free=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
    ;;
esac
[ "$free" -ge "$least_free_mib" ] ||
  refuse 3 "$name has $free MiB of memory free, expected $least_free_mib at least; end what holds the rest"
version=$("$hallmark" --version 2>&1) || refuse 3 "the program does not start here: $version"
version=$(printf '%s\n' "$version" | head -n 1)

# ---- Your own model: settings, and whether it fits.
number() { sed -n "s/^ *\"$1\": \([0-9][0-9]*\),*\$/\1/p" "$2" | head -n 1; }
mkdir -p "$out/logs" || refuse 3 "$out cannot be made"
out=$(cd "$out" && pwd)
level=L3 kv=bf16 engine='--device cuda' drafting='' model_mib=0 positions=0 vocab=0
if [ -n "$model" ]; then
  model=$(cd "$model" && pwd)
  "$hallmark" inspect "$model" --json >"$out/logs/inspect.json" 2>"$out/logs/inspect.err" ||
    { code=$?; refuse "$code" "the model was refused: $(cat "$out/logs/inspect.err")"; }
  vocab=$(number vocab "$out/logs/inspect.json")
  layers=$(number layers "$out/logs/inspect.json")
  embedding=device
  if [ "$shared" = no ] && [ "$total" -lt "$card_of_fp8_mib" ]; then kv=fp8 embedding=mapped; fi
  engine="--device cuda --kv $kv --embedding $embedding"
  planning="--vram ${free}MiB --kv $kv --embedding $embedding"
  [ "$shared" = no ] || planning="$planning --integrated"
  if [ -n "$drafter" ]; then
    drafter=$(cd "$drafter" && pwd)
    drafting='--drafter-weights 4bit'
    [ "$vocab" != 248320 ] || drafting="$drafting --draft-vocab 0:98304,247936:248320"
  else
    level=L2
  fi
fi
with_drafter() { # with_drafter COMMAND...: with the drafter's flags behind it, where there is one
  # shellcheck disable=SC2086  # the flags are words
  if [ -n "$drafter" ]; then "$@" --drafter "$drafter" $drafting; else "$@"; fi
}
plan() { # shellcheck disable=SC2086
  with_drafter "$hallmark" plan "$model" $planning "$@"
}
if [ -n "$model" ]; then
  for room in --streams=1 '--streams=8 --context=1024'; do # its longest prompt; a receipt's streams
    # shellcheck disable=SC2086
    plan $room --json >"$out/logs/plan.json" 2>"$out/logs/plan.err" ||
      refuse 3 "too little memory for this model: $(cat "$out/logs/plan.err")"
  done
  model_mib=$(($(number model "$out/logs/plan.json") / 1048576))
  positions=$(number one_stream_context "$out/logs/plan.json")
  limit=$((vocab * 15 / 16))
  [ "$limit" -le "$id_limit" ] || limit=$id_limit
fi

# ---- Results of another kit, card or model are not gone on with.
digest=$(sha256sum "$hallmark" | cut -c 1-12)
state=$out/state
same_run() { # same_run FILE TEXT: whether the first line is TEXT; writes it where there is no file
  [ -f "$1" ] || printf '%s\n' "$2" >"$1"
  found=$(head -n 1 "$1")
  [ "$found" = "$2" ] ||
    refuse 2 "$out holds results of another run ($found, not $2); give another --out, or remove it"
}

# ---- What will be done, and how long it takes.
case $capability in # GB/s over the weights, and a 27B's prompt ids a second, roughly
  8.0) speed=1200 rows=1000 ;; 8.*) speed=700 rows=700 ;; 9.*) speed=2500 rows=1500 ;;
  12.1) speed=200 rows=700 ;; 1*) speed=1000 rows=1000 ;; *) speed=500 rows=500 ;;
esac
passes=$receipt_passes
[ "$level" = L3 ] || passes=$((passes / 3))
own_minutes=0 work_minutes=0
if [ -n "$model" ]; then
  pass_ms=$((model_mib * 1049 / speed / 1000 + 1 + pass_overhead_ms * layers / 64))
  own_minutes=$((pass_ms * passes / 60000 + 2))
  # Prompts of 82,000 ids in all, replies of 2,000; the model is opened four times.
  work_minutes=$((82000 * model_mib / 13000 / rows / 60 + pass_ms * 2000 / 60000 + 4))
fi
cat <<END
Hallmark's kit, $version
GPU     $name, compute capability $capability, driver $driver
memory  $free of $total MiB free$([ "$shared" = no ] || echo ", shared with the host")
results $out

What will be done (minutes are estimates, not measured here)
  1  facts of the device
  2  every GPU suite                                   about $suites_minutes
  3  L3 receipt of the 11M model, keys in bf16         about $golden_minutes
  4  L3 receipt of the 11M model, keys in fp8          about $golden_minutes
  5  both receipts judged
END
if [ -n "$model" ]; then
  cat <<END
  6  $level receipt of your model, keys in $kv           about $own_minutes
  7  that receipt judged, with your files              about 1
  8  workloads of your model, timed                    about $work_minutes
Your model takes $model_mib MiB with scratch and drafter; $positions positions fit beside it.
END
fi
[ "$estimate" = no ] || exit 0
same_run "$state" "program $digest on $name, driver $driver"
[ -z "$model" ] || same_run "$out/own" "model $model, drafter ${drafter:-none}"
disk=$(df -Pk "$out" | awk 'NR == 2 { print int($4 / 1024) }')
[ "$disk" -ge "$least_disk_mib" ] || refuse 3 "$out has room for $disk MiB, expected $least_disk_mib at least"
TMPDIR=$out/tmp
TEST_TMPDIR=$TMPDIR/
export TMPDIR TEST_TMPDIR
rm -rf "$TMPDIR"
mkdir -p "$TMPDIR"

# ---- Steps. The state file has a line for each that ended: its name, exit code and seconds.
code_of() { sed -n "s/^$1 \([0-9]*\) [0-9]*\$/\1/p" "$state" | tail -n 1; }
trap 'say; say "stopped; the same command goes on after the last step that ended"; exit 3' INT TERM HUP
step() { # step NAME TITLE COMMAND...: output goes to logs/NAME.txt
  step_name=$1 title=$2
  shift 2
  code=$(code_of "$step_name")
  if [ -n "$code" ]; then
    say "$title: done before, exit code $code"
    return 0
  fi
  began=$(date +%s)
  ("$@") >"$out/logs/$step_name.txt" 2>&1 # a subshell, so that a stop is told on the terminal
  code=$?
  seconds=$(($(date +%s) - began))
  # A verdict stands; what could not be decided is tried again by the next start.
  case $code in 0 | 1) printf '%s %s %s\n' "$step_name" "$code" "$seconds" >>"$state" ;; esac
  case $code in
    0) say "$title: passed, $seconds s" ;;
    1) say "$title: FAILED, $seconds s; see $out/logs/$step_name.txt"; tail -n 5 "$out/logs/$step_name.txt" ;;
    *)
      say "$title: NOT DECIDED (exit code $code); see $out/logs/$step_name.txt"
      tail -n 5 "$out/logs/$step_name.txt"
      undecided=1
      ;;
  esac
}
undecided=0

device_facts() {
  facts=name,driver_version,compute_cap,memory.total,memory.free,clocks.max.sm,clocks.max.mem,power.limit
  "$smi" -i "$card" --query-gpu=$facts --format=csv
  say "program $version of source $(cat "$kit/SOURCE"), sha256 $(sha256sum "$hallmark" | cut -d ' ' -f 1)"
  say "system $(uname -srm)"
  grep -m 1 'model name' /proc/cpuinfo || true
  grep MemTotal /proc/meminfo
}
suite() { # A process of its own, so that a fault of the device ends one suite only.
  timeout --foreground "$suite_seconds" "$gpu_suites" "--gtest_filter=$1*" --gtest_brief=1
  ended=$?
  [ $ended -gt 1 ] || return $ended
  say "the suite ended with code $ended (124: it ran past $suite_seconds s)"
  return 1
}
receipt() { # receipt FOLDER ARGUMENTS...
  rm -rf "$out/receipts/$1"
  folder=$out/receipts/$1
  shift
  "$hallmark" receipt "$@" --out "$folder"
}
judge() { "$hallmark" verify "$@"; }
own_receipt() { # shellcheck disable=SC2086
  with_drafter receipt own "$model" --level "$level" $engine
}
own_judged() {
  if [ -n "$drafter" ]; then
    judge "$out/receipts/own" --checkpoint "$model" --drafter "$drafter"
  else
    judge "$out/receipts/own" --checkpoint "$model"
  fi
}

# prompts KIND TOKENS: an array of arrays of ids. The rule: x = 16807 x mod 2^31 - 1, id = x mod LIMIT.
prompts() {
  awk -v kind="$1" -v tokens="$2" -v limit="$limit" '
    function draw() { x = (x * 16807) % 2147483647; return x % limit }
    function put(id) { printf "%s%d", comma, id; comma = "," }
    BEGIN {
      x = 20261129 + tokens
      for (i = 0; i < tokens; ++i) ids[i] = draw()
      for (i = 0; i < 48; ++i) more[i] = draw()
      printf "["
      if (kind == "copy") {  # a passage, again, and its first ids: the model goes on copying
        printf "["; comma = ""
        for (r = 0; r < 2; ++r) for (i = 0; i < tokens; ++i) put(ids[i])
        for (i = 0; i < 64; ++i) put(ids[i])
        print "]]"
        exit
      }
      for (r = 0; r < 2; ++r) {  # the prompt, and the same with 48 ids more
        printf "%s[", r ? "," : ""; comma = ""
        for (i = 0; i < tokens; ++i) put(ids[i])
        if (r) for (i = 0; i < 48; ++i) put(more[i])
        printf "]"
      }
      print "]"
    }'
}
workload() { # workload KIND TOKENS REPLY
  prompts "$1" "$2" >"$out/logs/prompt-$1-$2.json" || return 3
  # shellcheck disable=SC2086
  with_drafter "$hallmark" run "$model" --prompts "$out/logs/prompt-$1-$2.json" --streams 1 \
    --max-tokens "$3" --ignore-stop --json $engine
}
# Reads the output of `workload`: prompt ids, rows resumed, seconds to the first id, ids a second, ids a round.
figures() {
  awk '
    function value() { v = $2; sub(/,$/, "", v); return v }
    /^ *"prompt_tokens":/ { tokens = value() }
    /^ *"resumed":/ { resumed = value() }
    /^ *"rounds":/ { rounds = value() }
    /^ *"decode_seconds":/ { seconds = value() }
    /^ *"decode_tokens_per_second":/ { rate = value() }
    /^ *"prompt_seconds":/ {
      printf "%d %d %.2f %.1f %.2f\n", tokens, resumed, value(), rate, rounds ? rate * seconds / rounds : 0
    }' "$1"
}

say
step device 'device' device_facts
suites=$("$gpu_suites" --gtest_list_tests | grep -v '^ ' | grep '\.' | sed 's/\..*/./')
[ -n "$suites" ] || refuse 3 "the GPU suites list no test"
for one in $suites; do
  step "suite-$(printf %s "$one" | tr -c 'A-Za-z0-9\n' -)" "suite ${one%.}" suite "$one"
done
for keys in bf16 fp8; do
  step "receipt-$keys" "L3 receipt of the 11M model, $keys" receipt "scribe-$keys" "$scribe" \
    --drafter "$scribe_drafter" --level L3 --device cuda --kv $keys
done
if [ "$(code_of receipt-bf16)$(code_of receipt-fp8)" = 00 ]; then
  step verify 'both receipts judged' judge "$out/receipts/scribe-bf16" "$out/receipts/scribe-fp8"
fi
if [ -n "$model" ]; then
  step own-receipt "$level receipt of your model, $kv" own_receipt
  [ "$(code_of own-receipt)" != 0 ] || step own-verify 'your receipt judged' own_judged
  for work in prompt:3600:128 prompt:8192:256 prompt:65536:128 copy:2048:1024; do
    kind=${work%%:*} reply=${work##*:}
    tokens=${work#*:}
    tokens=${tokens%:*}
    need=$((tokens + 48 + reply))
    [ "$kind" != copy ] || need=$((tokens * 2 + 64 + reply))
    if [ "$need" -gt "$positions" ]; then
      say "workload $kind of $tokens ids: not run, $positions positions fit"
    else
      step "work-$kind-$tokens" "workload $kind of $tokens ids" workload "$kind" "$tokens" "$reply"
    fi
  done
fi

# ---- The table and the summary.
table() {
  cat <<END
Workloads of $model
on $name, keys in $kv, ${drafting:-no drafter}; seconds to the first id, then ids a second.
Published elsewhere, by others and on their prompts: a 27B of 3.5 bits a weight, 4-bit drafter, keys
in fp8, on an RTX 3090 Ti; the copy is of an RTX 3090 with another engine.
The prompts here are ids drawn by a rule, not text. The time to the first id does not depend on
that; how many drafts land does, so ids a second are comparable with your own runs alone.

$(printf '%-22s %8s %8s %9s %8s %9s   %s' workload prompt resumed first-s ids/s ids/round 'published elsewhere')
END
  while read -r file label first published follow; do
    [ "$(code_of "work-$file")" = 0 ] || continue
    figures "$out/logs/work-$file.txt" | {
      row=$label
      text="$published"
      while read -r tokens resumed seconds rate round; do
        printf '%-22s %8s %8s %9s %8s %9s   %s\n' "$row" "$tokens" "$resumed" "$seconds" "$rate" "$round" \
          "$(printf '%s' "$text" | tr _ ' ')"
        row=$first text=$follow
      done
    }
  done <<END
prompt-3600 prompt-3.6k follow-up-3.6k 3.93_s_to_the_first_id 60.9_ids/s
prompt-8192 prompt-8k follow-up-8k 8.79_s_to_the_first_id,_223.5_ids/s none
prompt-65536 prompt-64k follow-up-64k 89.46_s_to_the_first_id none
copy-2048 long-copy none 381_ids/s none
END
}
members() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$2" | head -n 1; }
failed=$(awk 'NR > 1 && $2 == 1' "$state" | wc -l)
passed=$(awk 'NR > 1 && $2 == 0' "$state" | wc -l)
count_suites=$(printf '%s\n' "$suites" | wc -l)
summary() {
  say "Hallmark's kit, $version, program $digest"
  say "$name, compute capability $capability, driver $driver"
  say
  say "$passed steps passed, $failed failed$([ $undecided = 0 ] || echo ', and some were not decided')."
  awk 'NR > 1 && $2 == 1 { print "FAILED: " $1 }' "$state"
  if [ "$failed" -eq 0 ] && [ $undecided = 0 ]; then
    cat <<END
What was shown, on this card: $count_suites GPU suites found every kernel to keep its stated order of sums, bit
for bit or within registered tolerances; the 11M model's logits agree with the recorded fp32 reference;
and rows, chunks, windows, drafts, copies, resumed prompts and up to eight streams at once changed no
token and no bit of what they left behind, with keys and values in bf16 and in fp8.
END
    [ -z "$model" ] || [ "$(code_of own-verify)" != 0 ] ||
      say "The same holds for your own model, as its $level receipt lists."
    cat <<END
What was not shown: other inputs, other cards, speed (see the table, if there is one), or how good a
model's answers are.
END
  fi
  say
  for receipt in "$out"/receipts/*/*.intoto.jsonl; do
    [ -f "$receipt" ] || continue
    say "core digest   $(members core_sha256 "$receipt")  $(basename "$(dirname "$receipt")")"
    say "arithmetic    $(members arithmetic "$receipt")"
  done
}
summary >"$out/summary.txt"
if grep -q '^work-.* 0 ' "$state"; then
  table >"$out/table.txt"
  { say; cat "$out/table.txt"; } >>"$out/summary.txt"
fi
say
cat "$out/summary.txt"
rm -rf "$TMPDIR"
(cd "$out" && find summary.txt state own logs receipts -type f ! -name 'prompt-*' 2>/dev/null | LC_ALL=C sort |
  tar -czf hallmark-results.tar.gz -T -)
cat <<END

To send: $out/hallmark-results.tar.gz
It holds the summary, the logs and the receipts: name, driver and clocks of the GPU, the CPU's name, the
system's version, the folders' names you gave, and what your model wrote after prompts of drawn ids.
No weights, no host name.
END
[ "$failed" -eq 0 ] || exit 1
[ $undecided = 0 ] || exit 3
