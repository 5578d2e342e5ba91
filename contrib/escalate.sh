#!/bin/sh
# escalate.sh <severity> <message>: tells a person, by a Telegram bot.
#
# agent-deck-watchdog calls it when it lies in the watchdog folder and is
# executable. Replace it by whatever reaches you; what counts is the exit code:
#   0      sent
#   75     try again later (no network, 429, 5xx); a line "retry-after: N" on
#          standard output asks for a distance of at least N seconds
#   other  final: the message stays in the log only (78: not set up)
#
# Settings, from the environment:
#   TELEGRAM_ESCALATION_CHAT_ID  who is told: a number, or @channel
#   TELEGRAM_BOT_TOKEN           the bot; if empty, the line TELEGRAM_BOT_TOKEN=...
#                                of the Telegram plugin's .env file is read:
#                                $TELEGRAM_STATE_DIR/.env, else
#                                ~/.claude/channels/telegram/.env
#   TELEGRAM_API_BASE            default https://api.telegram.org
#
# The token is seen by nobody else: curl gets it on standard input, never as an
# argument and never in its environment. The .env file is parsed, never run.
# Try it: TELEGRAM_ESCALATION_CHAT_ID=12345 ./escalate.sh info 'hello "you"'

set -u
umask 077
# Bytes are bytes, whatever the caller's language.
LC_ALL=C
export LC_ALL

# Telegram's limit, counted in UTF-16 units (Bot API, sendMessage).
limit=4096
newline='
'
mark="${newline}[cut]"

final() { # <exit code> <sentence>
    printf 'escalate.sh: %s\n' "$2" >&2
    exit "$1"
}

# Sets `token` to the value of the first TELEGRAM_BOT_TOKEN line of a .env file, which
# is the one the plugin takes; `export`, quotes, a comment, a carriage return may be there.
read_token() { # <file>
    token=$(sed -n 's/^[[:space:]]*\(export[[:space:]]\{1,\}\)\{0,1\}TELEGRAM_BOT_TOKEN[[:space:]]*=[[:space:]]*//p' "$1" | head -n 1)
    case $token in
    \"*) token=${token#\"} token=${token%%\"*} ;;
    \'*) token=${token#\'} token=${token%%\'*} ;;
    *) token=${token%%[[:space:]#]*} ;;
    esac
}

# At most `limit` UTF-16 units of standard input, cut before a whole character.
# A byte below 128 or from 192 on begins a character; from 240 on it is one of two units.
bytes_to_keep() { # <units>
    od -A n -v -t u1 | awk -v max="$1" '
        { for (i = 1; i <= NF; i++) {
            if ($i < 128 || $i >= 192) {
                units += ($i >= 240) ? 2 : 1
                if (units > max) { print bytes + 0; cut = 1; exit }
            }
            bytes++
        } }
        END { if (!cut) print bytes + 0 }'
}

# Standard input as the inside of a quoted value of a curl config file.
quoted() {
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e "s/$tab/\\\\t/g" -e "s/$return/\\\\r/g" |
        awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'
}
tab=$(printf '\t')
return=$(printf '\r')

# Everything curl has to know. Here-documents, since in some shells printf is a
# program, whose arguments others can see.
config() {
    cat <<END
url = "$base/bot$token/sendMessage"
silent
show-error
connect-timeout = 10
max-time = 45
write-out = "\\n%{http_code}"
END
    printf 'data-urlencode = "chat_id='
    printf '%s\n' "$chat" | quoted
    printf '"\ndata-urlencode = "text='
    printf '%s\n' "$text" | quoted
    printf '"\n'
}

[ $# -eq 2 ] || final 64 'usage: escalate.sh <severity> <message>'

chat=${TELEGRAM_ESCALATION_CHAT_ID:-}
[ -n "$chat" ] || final 78 'TELEGRAM_ESCALATION_CHAT_ID is empty: nobody to tell'

command -v curl >/dev/null 2>&1 || final 78 'curl is not installed: cannot send'

token=${TELEGRAM_BOT_TOKEN:-}
unset TELEGRAM_BOT_TOKEN
env_file=${TELEGRAM_STATE_DIR:-${HOME:-}/.claude/channels/telegram}/.env
if [ -z "$token" ] && [ -r "$env_file" ]; then
    read_token "$env_file"
fi
[ -n "$token" ] || final 78 "no bot token: neither TELEGRAM_BOT_TOKEN nor a line of that name in $env_file"
number=${token%%:*} secret=${token#*:}
case $number in '' | *[!0-9]*) token= ;; esac
case $secret in '' | *[!A-Za-z0-9_-]*) token= ;; esac
[ "$secret" != "$number" ] || token= # no colon
[ -n "$token" ] || final 78 'the bot token does not look like one (digits, a colon, letters and digits)'

base=${TELEGRAM_API_BASE:-https://api.telegram.org}
case $base in
*[!A-Za-z0-9.:/_-]*) base= ;;
https://?* | http://?*) base=${base%/} ;;
*) base= ;;
esac
[ -n "$base" ] || final 78 'TELEGRAM_API_BASE is not a plain http or https address'

text="$1: $2"
if [ ${#text} -gt $limit ]; then
    keep=$(printf '%s' "$text" | bytes_to_keep $((limit - ${#mark})))
    total=$(printf '%s' "$text" | bytes_to_keep $limit)
    if [ "$total" -lt ${#text} ]; then
        text=$(printf '%s' "$text" | head -c "$keep")$mark
    fi
fi

# -q: no ~/.curlrc, which could make curl print the address and with it the token.
answer=$(config | curl -q -K - 2>&1)
curl_code=$?
http=${answer##*"$newline"}
sent=no
case $http:$answer in 200:*'"ok":true'* | 200:*'"ok": true'*) sent=yes ;; esac
# From here on it may be shown.
case $answer in *"$token"*) answer='' ;; esac
if [ $curl_code -ne 0 ]; then
    final 75 "curl failed with code $curl_code, try again: $(printf '%s\n' "$answer" | sed -n '/^curl:/p' | head -n 1)"
fi

why=$(printf '%s\n' "$answer" | tr -d '\n' |
    sed -n 's/.*"description"[[:space:]]*:[[:space:]]*"\([^"]\{1,200\}\).*/: \1/p')
case $http:$sent in
*:yes) exit 0 ;;
200:*) final 75 'an answer that is not from Telegram, try again' ;;
429:*)
    printf '%s\n' "$answer" |
        sed -n 's/.*"retry_after"[[:space:]]*:[[:space:]]*\([0-9]\{1,9\}\).*/retry-after: \1/p' | head -n 1
    final 75 "Telegram asks to wait (429)$why"
    ;;
5??:*) final 75 "Telegram has trouble ($http), try again$why" ;;
401:* | 404:*) final 1 "Telegram does not know this bot ($http): is the token right?$why" ;;
*) final 1 "Telegram refuses the message ($http)$why" ;;
esac
