# Collmark: one Makefile, no recursion into folders. Files are found, not listed.
#
#   make                  the drivers: src/collectives/X.c -> build/X_perf
#   make check            all tests, quick        make check-slow   with the long tables
#   make check-asan       under ASan + UBSan      make check-tsan   under TSan
#   make fuzz             short fuzz runs (clang) make bench        side by side with MPI
#   make lint             rules of the house      make format       rewrite with clang-format
#   make install          PREFIX=, DESTDIR=       make readme       option table of README.md
#   make config           what was found          make clean        all build folders
#
# Variables: CC= CFLAGS= LDFLAGS= BUILDDIR= NAME_SUFFIX= PREFIX= DESTDIR=
#   V=1       show commands
#   WERROR=1  warnings are errors
#   SAN=      address,undefined | thread | any list for -fsanitize=
#   MPI=      auto (default) | 0 | 1 | openmpi | mpich;  MPICC=path or MPI_HOME=folder choose one
#   CUDA=, IB=  0 | auto: reported only, their backends do not exist yet

# ---- what the caller may choose --------------------------------------------------------------

ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS ?= -O3 -g
PREFIX ?= /usr/local
MPI    ?= auto
CUDA   ?= auto
IB     ?= auto
CLANG  ?= clang
NVCC   ?= $(if $(CUDA_HOME),$(CUDA_HOME)/bin/nvcc,nvcc)
PKG_CONFIG   ?= pkg-config
CLANG_FORMAT ?= clang-format
FUZZ_SECONDS ?= 10

comma := ,
san_name_address,undefined := -asan
san_name_thread := -tsan
ifneq ($(SAN),)
san_dir := $(or $(san_name_$(SAN)),-$(subst $(comma),-,$(SAN)))
endif
BUILDDIR ?= build$(san_dir)
B := $(BUILDDIR)
Q := $(if $(filter 1,$(V)),,@)

# ---- what this machine has -------------------------------------------------------------------

have = $(firstword $(shell command -v $(1) 2>/dev/null))
pkg  = $(shell $(PKG_CONFIG) $(1) $(2) 2>/dev/null)
machine := $(shell $(CC) -dumpmachine 2>/dev/null)

ifeq ($(MPI),0)
mpicc :=
else ifneq ($(MPICC),)
mpicc := $(call have,$(MPICC))
else ifneq ($(MPI_HOME),)
mpicc := $(call have,$(MPI_HOME)/bin/mpicc)
else ifneq ($(filter openmpi mpich,$(MPI)),)
mpicc := $(call have,mpicc.$(MPI))
else
mpicc := $(call have,mpicc)
endif

# Only launch_mpi.c and the link line see MPI: its flags come from the wrapper, the compiler is CC.
ifneq ($(mpicc),)
mpi_show   := $(shell $(mpicc) -show 2>/dev/null)
mpi_cflags := $(patsubst -I%,-isystem%,$(filter -I% -D%,$(mpi_show)))
mpi_libs   := $(filter -L% -l% -Wl$(comma)%,$(mpi_show))
mpi_dir    := $(dir $(mpicc))
mpi_kind   := $(patsubst mpicc%,%,$(notdir $(mpicc)))
# mpicc.mpich belongs to mpirun.mpich; a plain mpicc may be a link of the distribution's choice.
MPIRUN     ?= $(or $(wildcard $(mpi_dir)mpirun$(mpi_kind)),$(call have,mpirun))
endif

cjson_cflags := $(call pkg,--cflags,libcjson)
cjson_libs   := $(or $(call pkg,--libs,libcjson),-lcjson)
cjson_found  := $(or $(call pkg,--modversion,libcjson),\
  $(if $(wildcard /usr/include/cjson/cJSON.h /usr/local/include/cjson/cJSON.h),yes))
verbs_found  := $(if $(filter 0,$(IB)),,$(call pkg,--modversion,libibverbs))
nvcc_found   := $(if $(filter 0,$(CUDA)),,$(call have,$(NVCC)))

# ---- flags -----------------------------------------------------------------------------------

warnings := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla \
  -Wpointer-arith -Wwrite-strings -Wold-style-definition $(if $(filter 1,$(WERROR)),-Werror)
san_flags := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
cppflags  := -Isrc -MMD -MP
# No contraction: a fused multiply-add would round differently from machine to machine.
cflags    := -std=gnu11 -ffp-contract=off $(warnings) $(CFLAGS) $(san_flags) -pthread
ldlibs    := $(cjson_libs) -lm -ldl -pthread
avx2      := $(if $(filter x86_64-%,$(machine)),-mavx2 -mf16c -mfma)

# Flags that one file needs beyond the common ones, chosen by its name.
# The kernels are vector code already: -O3 costs them build time and gains nothing.
own_flags = $(if $(filter %_avx2.c,$(1)),$(avx2)) \
  $(if $(filter src/kernels/reduce_%,$(1)),$(subst -O3,-O2,$(filter -O3,$(CFLAGS)))) \
  $(if $(filter %/launch_mpi.c bench/%,$(1)),$(mpi_cflags)) \
  $(if $(filter %/report_json.c,$(1)),$(cjson_cflags))

# ---- files -----------------------------------------------------------------------------------

floors   := base kernels transport engine common
mpi_src  := $(wildcard src/common/launch_mpi.c)
lib_src  := $(filter-out $(mpi_src),$(sort $(foreach f,$(floors),$(wildcard src/$(f)/*.c))))
coll_src := $(sort $(wildcard src/collectives/*.c))
test_src := $(sort $(wildcard tests/test_*.c))
# Scripts are tests if they may be executed; others are parts of tests.
test_sh  := $(sort $(shell find tests -maxdepth 1 -perm -u+x \
  '(' -name '*.sh' -o -name '*.py' ')'))
fuzz_src := $(sort $(wildcard fuzz/fuzz_*.c))
bench_src := $(sort $(wildcard bench/*.c))

obj       = $(patsubst %.c,$(B)/obj/%.o,$(1))
lib      := $(B)/libcollmark.a
mpi_obj  := $(if $(mpicc),$(call obj,$(mpi_src)))
drivers  := $(patsubst src/collectives/%.c,$(B)/%_perf$(NAME_SUFFIX),$(coll_src))
tests    := $(patsubst tests/%.c,$(B)/tests/%,$(test_src))
fuzzers  := $(patsubst fuzz/%.c,$(B)/fuzz/%,$(fuzz_src))
benches  := $(if $(mpicc),$(patsubst bench/%.c,$(B)/bench/%,$(bench_src)))
every_src := $(lib_src) $(mpi_src) $(coll_src) $(test_src) $(fuzz_src) $(bench_src)
formatted := $(every_src) $(sort $(wildcard src/*/*.h tests/*.h bench/*.h fuzz/*.h))

# ---- a request that cannot be met ends here, with the remedy ----------------------------------

no_build := clean format format-check lint config
ifneq ($(or $(filter-out $(no_build),$(MAKECMDGOALS)),$(if $(MAKECMDGOALS),,all)),)
ifeq ($(cjson_found),)
$(error libcjson is missing and required: apt-get install libcjson-dev)
endif
ifeq ($(filter auto 0 1 openmpi mpich,$(MPI)),)
$(error MPI=$(MPI): use auto, 0, 1, openmpi or mpich)
endif
ifeq ($(mpicc),)
ifeq ($(filter auto 0,$(MPI)),)
$(error MPI=$(MPI) but no $(or $(MPICC),mpicc) was found: apt-get install libopenmpi-dev, \
  or MPICC=path, or MPI=0)
endif
else ifeq ($(mpi_libs),)
$(error $(mpicc) -show gives no libraries: choose another with MPICC=path, or MPI=0)
endif
endif

# ---- rules -----------------------------------------------------------------------------------

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all config check check-slow check-asan check-tsan fuzz fuzz-run lint format format-check \
  bench readme install clean tests FORCE
all: $(drivers) $(lib)

# A stamp holds the flags of a kind of output and changes only when they do.
stamp = $(Q)mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(strip $(1)))' | cmp -s - $@ || \
  printf '%s\n' '$(subst ','\'',$(strip $(1)))' >$@
$(B)/.compile: FORCE
	$(call stamp,$(CC) $(machine) $(cppflags) $(cflags) $(avx2) $(cjson_cflags))
$(B)/.mpi: FORCE
	$(call stamp,$(mpi_cflags))
$(B)/.link: FORCE
	$(call stamp,$(CC) $(san_flags) $(LDFLAGS) $(mpi_obj) $(mpi_libs) $(ldlibs))
$(B)/.members: FORCE
	$(call stamp,$(lib_src))

# The summary is printed when it is new; `make config` prints it in any case.
row = $(if $(2),✓,✗) $(1): $(or $(2),$(3))
summary = 'collmark: $(CC) ($(machine)) -> $(B)' \
  '  $(call row,MPI     ,$(mpicc),$(if $(filter 0,$(MPI)),off,no mpicc: threads only))' \
  '  $(call row,cJSON   ,$(cjson_found),missing and required)' \
  '  $(call row,CUDA    ,$(if $(nvcc_found),$(nvcc_found) (no backend yet)),not found or off)' \
  '  $(call row,verbs   ,$(if $(verbs_found),$(verbs_found) (no backend yet)),not found or off)'
config:
	@printf '%s\n' $(summary)
$(B)/.config: FORCE
	$(Q)mkdir -p $(@D); printf '%s\n' $(summary) | cmp -s - $@ || \
	  printf '%s\n' $(summary) | tee $@
FORCE:

$(B)/obj/%.o: %.c $(B)/.compile | $(B)/.config
	@echo '  CC   $<'
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(cppflags) $(cflags) $(call own_flags,$<) -c -o $@ $<
$(call obj,$(mpi_src) $(bench_src)): $(B)/.mpi

$(lib): $(call obj,$(lib_src)) $(B)/.members
	@echo '  AR   $@'
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

# A program is one object plus the library. The MPI launcher is named on the link line because
# launch.c refers to it weakly, and a weak reference takes nothing out of an archive.
link = $(CC) $(san_flags) $(LDFLAGS) $(1) -o $@ $(filter %.o %.a,$^) $(mpi_libs) $(ldlibs)
define program
	@echo '  LD   $@'
	$(Q)mkdir -p $(@D)
	$(Q)$(link)
endef
$(B)/%_perf$(NAME_SUFFIX): $(B)/obj/src/collectives/%.o $(mpi_obj) $(lib) $(B)/.link
	$(program)
$(B)/tests/%: $(B)/obj/tests/%.o $(mpi_obj) $(lib) $(B)/.link
	$(program)
$(B)/bench/%: $(B)/obj/bench/%.o $(mpi_obj) $(lib) $(B)/.link
	$(program)
$(B)/fuzz/%: $(B)/obj/fuzz/%.o $(mpi_obj) $(lib) $(B)/.link
	@echo '  LD   $@'
	$(Q)mkdir -p $(@D)
	$(Q)$(call link,-fsanitize=fuzzer)

# ---- tests -----------------------------------------------------------------------------------

tests: $(tests)
run_tests = BUILDDIR='$(B)' NAME_SUFFIX='$(NAME_SUFFIX)' MPIRUN='$(MPIRUN)' SAN='$(SAN)' \
  scripts/run_tests.sh $(tests) $(test_sh)
check: $(drivers) $(tests)
	@$(run_tests)
check-slow: $(drivers) $(tests)
	@COLLMARK_SLOW=1 $(run_tests)
check-asan:
	@$(MAKE) --no-print-directory SAN=address,undefined check
check-tsan:
	@$(MAKE) --no-print-directory SAN=thread check

fuzz:
	@$(MAKE) --no-print-directory CC=$(CLANG) SAN=fuzzer-no-link,address,undefined MPI=0 \
	  BUILDDIR=build-fuzz fuzz-run
fuzz-run: $(fuzzers)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/run_fuzz.sh $(fuzzers)

bench: $(benches)
	$(if $(benches),,$(error make bench compares with MPI, and none was found))
	@BUILDDIR='$(B)' MPIRUN='$(MPIRUN)' scripts/bench.sh

lint:
	@scripts/lint.sh
format:
	$(Q)$(CLANG_FORMAT) -i $(formatted)
format-check:
	$(Q)$(CLANG_FORMAT) --dry-run --Werror $(formatted)
readme: $(drivers)
	@BUILDDIR='$(B)' NAME_SUFFIX='$(NAME_SUFFIX)' scripts/readme.sh options

# ---- install, clean --------------------------------------------------------------------------

share := $(wildcard README.md CHANGELOG.md CONTRIBUTING.md LICENSE \
  scripts/*.schema.json src/common/*.schema.json)
install: $(drivers)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/collmark
	install -m 755 $(drivers) $(DESTDIR)$(PREFIX)/bin
	$(if $(share),install -m 644 $(share) $(DESTDIR)$(PREFIX)/share/collmark)

# Removes only folders that carry our stamp, so a wrong BUILDDIR costs nothing.
clean:
	$(Q)for d in '$(B)' build build-*; do if [ -e "$$d/.compile" ]; then rm -rf -- "$$d"; fi; done

-include $(patsubst %.o,%.d,$(call obj,$(every_src)))
