# GNU make and a POSIX shell. `make help` lists the targets.

CARGO ?= cargo
# As Cargo.toml says.
RUST_MIN := $(shell sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml)
# Where the watchdog looks for its own files, and where it is installed by default.
ROOT := $(or $(AGENT_DECK_ROOT),$(HOME)/.agent-deck)
STATIC_TARGET ?= x86_64-unknown-linux-musl
# The static binary may not grow beyond this (bytes).
STATIC_MAX_BYTES ?= 900000

NAME := agent-deck-watchdog
RELEASE := target/release/$(NAME)
STATIC := target/$(STATIC_TARGET)/release/$(NAME)
FOLDER = $(DESTDIR)$(ROOT)/watchdog
SHARE = $(DESTDIR)$(PREFIX)/share

# Rust's own linker folds functions that are alike and packs relocations. Tables for
# unwinding are of no use where a panic aborts: none are made, tables.ld drops std's, and
# without the unwinder itself (contrib/no-unwind/lib.rs) std's reader of debug information
# falls away too: 40 % smaller in all. Functions with much on their stack stay apart: what
# lies far up in a large frame is reached by longer instructions.
NO_UNWIND := target/no-unwind/$(STATIC_TARGET)/libno_unwind.rlib
# Where it was built is nobody's business, and makes no difference.
REMAP := --remap-path-prefix=$(CURDIR)=. --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=cargo
STATIC_FLAGS ?= $(REMAP) -C linker=rust-lld -C link-arg=--icf=all -C link-arg=-zpack-relative-relocs \
    -C force-unwind-tables=no -C link-arg=--no-eh-frame-hdr -C link-arg=-Tcontrib/no-unwind/tables.ld \
    --cfg no_unwind --extern no_unwind=$(NO_UNWIND) --cfg sha2_backend="soft" --cfg sha2_backend_soft="compact" \
    -C llvm-args=--inline-max-stacksize=256 -C llvm-args=-inlinehint-threshold=10 -C link-arg=-O2

# What `make dist` packs, and for which machines.
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
DIST_TARGETS ?= x86_64-unknown-linux-musl aarch64-unknown-linux-musl

# Weeks that `make soak` simulates, and how many before it remembers how far it is.
SOAK_WEEKS ?= 5000
SOAK_PIECE := 20

# The tests wait more than they compute: more of them at once than there are cores.
export RUST_TEST_THREADS ?= 6

# A shell without a login has not read rustup's setting.
export PATH := $(PATH):$(HOME)/.cargo/bin
.PHONY: all help demo picture test check soak static dist bench install uninstall clean cargo

all: cargo
	$(CARGO) build --release --locked

help:
	@echo 'make            release build: $(RELEASE)'
	@echo 'make demo       watch a bundled stand-in deck: one dies, one is deaf, one waits, one must be left alone'
	@echo 'make picture    the same, drawn into contrib/demo.svg'
	@echo 'make test       all tests'
	@echo 'make check      format, lints and all tests'
	@echo 'make soak       $(SOAK_WEEKS) simulated weeks of forty children each, for hours; goes on where it was interrupted'
	@echo 'make static     static binary: $(STATIC)'
	@echo 'make dist       archives of it for $(DIST_TARGETS), in dist/'
	@echo 'make bench      what it costs, and how fast it is, as one table (the static binary, if built)'
	@echo '                BENCH_DEATHS=20 dies more often, BENCH_OTHER=command measures another one beside it,'
	@echo '                AGENT_DECK_E2E_BIN=path measures on that agent-deck too'
	@echo 'make install    into $(ROOT)/watchdog; with PREFIX=/usr/local into its bin and share'
	@echo 'make uninstall  takes that away again, keeps state and logs'
	@echo 'make clean      removes target/'

demo: all
	$(CARGO) build --release --locked --example standin
	contrib/demo $(RELEASE) target/release/examples/standin

picture: all
	$(CARGO) build --release --locked --example standin
	contrib/picture $(RELEASE) target/release/examples/standin >target/demo.svg
	mv target/demo.svg contrib/demo.svg

test: cargo
	$(run_tests)

check: cargo
	@$(call component,fmt,rustfmt)
	@$(call component,clippy,clippy)
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(run_tests)

# How far it is, is remembered for one build: another one begins anew.
soak: cargo
	$(CARGO) test --locked --profile soak --test simulator --no-run
	@program=$$(ls -t target/soak/deps/simulator-* | grep -v '[.]d$$' | head -1); \
	at=target/soak/next-$$(cksum <"$$program" | cut -d' ' -f1); \
	next=$$(cat "$$at" 2>/dev/null || echo 0); \
	while [ "$$next" -lt '$(SOAK_WEEKS)' ]; do \
	    WEEK_FROM=$$next WEEK_SEEDS=$(SOAK_PIECE) "$$program" --exact week::week --nocapture >target/soak/log 2>&1 || \
	        { cat target/soak/log; exit 1; }; \
	    next=$$((next + $(SOAK_PIECE))); echo "$$next" >"$$at"; \
	    echo "$$next of $(SOAK_WEEKS) weeks: $$(grep '^Points' target/soak/log)"; \
	done

static: cargo
	@if ! [ -d "$$(rustc --print sysroot)/lib/rustlib/$(STATIC_TARGET)/lib" ] && ! rustup target add '$(STATIC_TARGET)'; then \
	    echo 'make: Rust has no target $(STATIC_TARGET): rustup target add $(STATIC_TARGET)' >&2; \
	    exit 1; \
	fi
	@mkdir -p '$(dir $(NO_UNWIND))'
	rustc --edition 2024 --crate-type rlib --crate-name no_unwind --target '$(STATIC_TARGET)' $(REMAP) \
	    -C panic=abort -C opt-level=s -o '$(NO_UNWIND)' contrib/no-unwind/lib.rs
	RUSTFLAGS='$(STATIC_FLAGS)' $(CARGO) build --release --locked --target '$(STATIC_TARGET)'
	contrib/check-static '$(STATIC)' '$(STATIC_MAX_BYTES)'

dist: cargo
	@rm -rf dist
	@for target in $(DIST_TARGETS); do \
	    $(MAKE) --no-print-directory static STATIC_TARGET="$$target" && \
	    contrib/dist "target/$$target/release/$(NAME)" "$(NAME)-$(VERSION)-$$target" || exit 1; \
	done
	@cd dist && sha256sum *.tar.gz >SHA256SUMS && cat SHA256SUMS

# One table on stdout; BENCH_SECONDS, BENCH_DEATHS, BENCH_OTHER and AGENT_DECK_E2E_BIN are in
# tests/bench/bench.rs. The static binary is measured if there is one, brought up to date.
# Valgrind hides the kernel page from which rustix reads the clock: what it counts is built
# upon libc instead.
COUNTED := target/callgrind/release/$(NAME)
bench: all
	$(CARGO) build --release --locked --example standin --example bench
	@if [ -e '$(STATIC)' ]; then $(MAKE) static; fi
	@if command -v valgrind >/dev/null 2>&1; then \
	    RUSTFLAGS='--cfg rustix_use_libc' $(CARGO) build --release --locked --target-dir target/callgrind; \
	fi
	@target/release/examples/bench target/release/examples/standin \
	    '$(or $(wildcard $(STATIC)),$(RELEASE))' '$(COUNTED)'

# BIN=path installs another build, such as the static one.
ifeq ($(BIN),)
BIN := $(RELEASE)
install: all
endif

# The running program keeps the old file: the new one takes its place by rename.
define put_binary
cp '$(BIN)' '$(1)/.$(NAME).new' && chmod 755 '$(1)/.$(NAME).new' && mv -f '$(1)/.$(NAME).new' '$(1)/$(NAME)'
endef

ifeq ($(PREFIX),)
install:
	@umask 077 && mkdir -p '$(FOLDER)'
	@$(call put_binary,$(FOLDER))
	@echo 'installed $(FOLDER)/$(NAME)'
	@if [ -e '$(FOLDER)/escalate.sh' ]; then \
	    echo 'kept      $(FOLDER)/escalate.sh, which was there'; \
	else \
	    cp contrib/escalate.sh '$(FOLDER)/escalate.sh' && chmod 700 '$(FOLDER)/escalate.sh' && \
	    echo 'installed $(FOLDER)/escalate.sh'; \
	fi
	@echo 'next: $(FOLDER)/$(NAME) doctor; what starts it: its print systemd, launchd or cron'

uninstall:
	@rm -f '$(FOLDER)/$(NAME)'
	@if cmp -s contrib/escalate.sh '$(FOLDER)/escalate.sh'; then rm -f '$(FOLDER)/escalate.sh'; fi
	@echo 'removed $(FOLDER)/$(NAME); state, logs, flags and your own escalate.sh are kept there'
else
install:
	@umask 022 && mkdir -p '$(DESTDIR)$(PREFIX)/bin' '$(SHARE)/man/man1' '$(SHARE)/$(NAME)'
	@$(call put_binary,$(DESTDIR)$(PREFIX)/bin)
	@cp contrib/$(NAME).1 '$(SHARE)/man/man1/$(NAME).1'
	@cp contrib/escalate.sh contrib/triage-claude contrib/logrotate.conf contrib/$(NAME)-failed.service '$(SHARE)/$(NAME)/'
	@for file in $(NAME).service com.agentdeck.watchdog.plist crontab.example; do \
	    sed -e 's|%h/.agent-deck/watchdog/$(NAME)|$(PREFIX)/bin/$(NAME)|' \
	        -e 's|[$$]HOME/.agent-deck/watchdog/$(NAME)|$(PREFIX)/bin/$(NAME)|' \
	        "contrib/$$file" >'$(SHARE)/$(NAME)/'"$$file" || exit 1; \
	done
	@chmod 644 '$(SHARE)/man/man1/$(NAME).1' '$(SHARE)/$(NAME)'/* && chmod 755 '$(SHARE)/$(NAME)/escalate.sh' '$(SHARE)/$(NAME)/triage-claude'
	@echo 'installed $(DESTDIR)$(PREFIX)/bin/$(NAME), its man page, and $(SHARE)/$(NAME)/'
	@echo 'next, as the user it is for: $(NAME) doctor; what starts it: its print systemd, launchd or cron'
	@echo 'to be told by Telegram: $(NAME) print escalate >~/.agent-deck/watchdog/escalate.sh, and chmod 700 it'

uninstall:
	@rm -f '$(DESTDIR)$(PREFIX)/bin/$(NAME)' '$(SHARE)/man/man1/$(NAME).1'
	@rm -rf '$(SHARE)/$(NAME)'
	@echo 'removed from $(DESTDIR)$(PREFIX); ~/.agent-deck/watchdog is kept'
endif

clean:
	$(CARGO) clean

# Says in one line what is missing and how to get it.
cargo:
	@if ! command -v $(CARGO) >/dev/null 2>&1; then \
	    echo 'make: cargo is missing: install Rust $(RUST_MIN) or later from https://rustup.rs, or say CARGO=/path/to/cargo' >&2; \
	    exit 1; \
	elif ! version=$$($(CARGO) --version); then \
	    echo 'make: cargo does not run (no toolchain yet? rustup default stable)' >&2; \
	    exit 1; \
	elif ! echo "$$version" | awk -v min='$(RUST_MIN)' '{ split($$2, v, "."); split(min, m, "."); exit !(v[1] > m[1] || (v[1] == m[1] && v[2] >= m[2])) }'; then \
	    echo "make: $$version is too old, Rust $(RUST_MIN) is needed: rustup update stable, or see https://rustup.rs" >&2; \
	    exit 1; \
	elif ! command -v cc >/dev/null 2>&1; then \
	    echo 'make: no C linker (cc): apt-get install gcc, or xcode-select --install' >&2; \
	    exit 1; \
	fi

# All tests, as `cargo test` runs them; but those of patience.rs, which do nothing but wait
# for a minute, and the simulator, which does nothing but compute, run beside the others.
TESTS := $(basename $(notdir $(wildcard tests/*.rs))) $(notdir $(patsubst %/main.rs,%,$(wildcard tests/*/main.rs)))
BESIDE := patience simulator
define run_tests
@mkdir -p target
$(CARGO) test --locked --no-run
@$(CARGO) test --locked --no-fail-fast $(addprefix --test ,$(BESIDE)) >target/beside.log 2>&1 & beside=$$!; \
    $(CARGO) test --locked --lib --bins $(addprefix --test ,$(filter-out $(BESIDE),$(TESTS))); code=$$?; \
    wait $$beside || code=1; cat target/beside.log; exit $$code
endef

# component(cargo command, rustup component)
define component
if ! $(CARGO) $(1) --version >/dev/null 2>&1 && ! rustup component add $(2); then \
    echo 'make: cargo $(1) is missing: rustup component add $(2), or the $(2) package of your system' >&2; \
    exit 1; \
fi
endef
