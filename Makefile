# Collmark: one Makefile, no recursion into folders. Files are found, not listed.
#
#   make                  the drivers: src/collectives/X.c -> build/X_perf
#   make check            all tests, quick        make check-slow   with the long tables
#   make check-asan       under ASan + UBSan      make check-tsan   under TSan
#   make check-sim        the CUDA kernels on the CPU, under both      make mutants      broken ones
#   make check-ib         the ib wire over soft-RoCE, in a virtual machine (needs root)
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
#   CUDA=     auto (default) | 0 | 1;  CUDA_HOME=folder or NVCC=path choose a toolkit
#   CUDA_ARCHS=  compute capabilities to compile for, PTX for the last; NVCCFLAGS= more flags
#   CJSON=0   builds without cJSON: -J is refused
#   IB=       auto (default) | 0 | 1: the ib wire, which needs the headers of libibverbs

# ---- what the caller may choose --------------------------------------------------------------

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
CFLAGS ?= -O3 -g
PREFIX ?= /usr/local
MPI    ?= auto
CUDA   ?= auto
CJSON  ?= auto
IB     ?= auto
CLANG  ?= clang
CLANGXX ?= $(CLANG)++
CUDA_ARCHS ?= 80 90 100 120
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

# Only *_mpi.c and the link line see MPI: its flags come from the wrapper, the compiler is CC.
ifneq ($(mpicc),)
mpi_show   := $(shell $(mpicc) -show 2>/dev/null)
mpi_cflags := $(patsubst -I%,-isystem%,$(filter -I% -D%,$(mpi_show)))
mpi_libs   := $(filter -L% -l% -Wl$(comma)%,$(mpi_show))
mpi_dir    := $(dir $(mpicc))
mpi_kind   := $(patsubst mpicc%,%,$(notdir $(mpicc)))
# mpicc.mpich belongs to mpirun.mpich; a plain mpicc may be a link of the distribution's choice.
MPIRUN     ?= $(or $(wildcard $(mpi_dir)mpirun$(mpi_kind)),$(call have,mpirun))
endif

ifneq ($(CJSON),0)
cjson_cflags := $(call pkg,--cflags,libcjson)
cjson_libs   := $(or $(call pkg,--libs,libcjson),-lcjson)
cjson_found  := $(or $(call pkg,--modversion,libcjson),\
  $(if $(wildcard /usr/include/cjson/cJSON.h /usr/local/include/cjson/cJSON.h),yes))
endif
# Headers alone: the library is loaded at run time.
verbs_found  := $(if $(filter 0,$(IB)),,$(or $(call pkg,--modversion,libibverbs),\
  $(if $(wildcard /usr/include/infiniband/verbs.h /usr/local/include/infiniband/verbs.h),yes)))
verbs_cflags := $(call pkg,--cflags,libibverbs)

# CUDA is built if the compiler, the headers and the shared runtime are there. Toolkits keep them
# in one folder (targets/ for other machines), distributions in /usr, wheels without links.
ifneq ($(CUDA),0)
nvcc      := $(call have,$(or $(NVCC),$(if $(CUDA_HOME),$(CUDA_HOME)/bin/nvcc,nvcc)))
nvcc      := $(or $(nvcc),$(if $(NVCC)$(CUDA_HOME),,$(firstword \
  $(wildcard /usr/local/cuda/bin/nvcc .cuda/nvidia/cu*/bin/nvcc))))
endif
# Headers serve the simulator too, so they are looked for where there is no compiler.
cuda_home := $(abspath $(or $(CUDA_HOME),$(if $(nvcc), \
  $(shell $(nvcc) -dryrun -E -x cu /dev/null 2>&1 | sed -n 's/^.. TOP=//p')),/usr/local/cuda))
cuda_dirs := $(cuda_home) $(wildcard $(cuda_home)/targets/*-linux) /usr
cuda_inc  := $(patsubst %/cuda_runtime.h,%,$(firstword \
  $(wildcard $(cuda_dirs:%=%/include/cuda_runtime.h))))
cudart    := $(firstword $(wildcard $(foreach d,$(cuda_dirs), \
  $(addprefix $(d)/,lib64/libcudart.so lib/libcudart.so lib/$(machine)/libcudart.so \
  lib64/libcudart.so.1? lib/libcudart.so.1?))))
cuda_why  := $(strip $(if $(filter 0,$(CUDA)),off,$(if $(nvcc),$(if $(cuda_inc), \
  $(if $(cudart),,$(nvcc) but no libcudart.so), \
  $(nvcc) but no cuda_runtime.h),no nvcc: host backend only)))
ifeq ($(cuda_why),)
cuda_known := $(patsubst compute_%,%,$(shell $(nvcc) --list-gpu-arch 2>/dev/null))
cuda_archs := $(if $(filter file,$(origin CUDA_ARCHS)),$(filter $(cuda_known),$(CUDA_ARCHS)), \
  $(CUDA_ARCHS))
endif

# ---- flags -----------------------------------------------------------------------------------

warnings := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla \
  -Wpointer-arith -Wwrite-strings -Wold-style-definition $(if $(filter 1,$(WERROR)),-Werror)
san_flags := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
cppflags  := -Isrc -MMD -MP
# No contraction: a fused multiply-add would round differently from machine to machine.
cflags    := -std=gnu11 -ffp-contract=off $(warnings) $(CFLAGS) $(san_flags) -pthread
ldlibs    := $(cjson_libs) -lm -ldl -pthread

# Results must be those of the host: no contraction here either. A spill fails the build. Statics
# of the stubs nvcc writes are never reached (launchers call cudaLaunchKernelExC): no libstdc++.
ifneq ($(cuda_archs),)
cuda_newest := $(lastword $(cuda_archs))
cuda_gen   := $(foreach a,$(cuda_archs),-gencode arch=compute_$(a),code=sm_$(a)) \
  -gencode arch=compute_$(cuda_newest),code=compute_$(cuda_newest)
nvcc_host  := -Wall,-Wextra,-g,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-ffp-contract=off
nvcc_flags := -O3 -std=c++17 --fmad=false -lineinfo -Xptxas \
  --warn-on-spills,--warn-on-local-memory-usage -Werror all-warnings -Xcompiler $(nvcc_host) \
  -Isrc $(cuda_gen) $(NVCCFLAGS)
# The path of the library gives its soname; found at run time where it was found here.
cuda_libs  := -Wl,--as-needed $(cudart) -Wl,-rpath,$(patsubst %/,%,$(dir $(cudart))) \
  -Wl,--enable-new-dtags
endif
cuda_cflags := $(if $(filter-out /usr/include,$(cuda_inc)),-isystem $(cuda_inc))
avx2      := $(if $(filter x86_64-%,$(machine)),-mavx2 -mf16c -mfma)

# Flags that one file needs beyond the common ones, chosen by its name.
# The kernels are vector code already: -O3 costs them build time and gains nothing.
own_flags = $(if $(filter %_avx2.c,$(1)),$(avx2)) \
  $(if $(filter src/kernels/reduce_%,$(1)),$(subst -O3,-O2,$(filter -O3,$(CFLAGS)))) \
  $(if $(filter %_mpi.c bench/%_compare.c,$(1)),$(mpi_cflags)) \
  $(if $(filter %/report_json.c %/report_json_rows.c %/report_json_find.c,$(1)),$(cjson_cflags)) \
  $(if $(filter src/transport/ib% src/transport/verbs% tests/verbs_% tests/test_ib%,$(1)), \
    $(verbs_cflags)) \
  $(if $(filter %_cuda.c,$(1)),$(cuda_cflags))

# ---- files -----------------------------------------------------------------------------------

floors   := base kernels transport engine common
mpi_src  := $(wildcard src/common/*_mpi.c)
# Named for what they need: *_cuda.c and *.cu are compiled if CUDA was found.
cuda_src := $(sort $(foreach f,$(floors),$(wildcard src/$(f)/*_cuda.c)))
cu_src   := $(sort $(wildcard src/kernels/*.cu))
# -J is answered with cJSON, or with a refusal.
json_left := $(if $(filter 0,$(CJSON)),$(addprefix src/common/report_json,.c _rows.c _find.c), \
  src/common/report_json_none.c)
# The ib wire, or its refusal.
ib_none  := src/transport/ib_none.c
ib_src   := $(filter-out $(ib_none),$(wildcard src/transport/ib*.c src/transport/verbs.c))
ib_left  := $(if $(verbs_found),$(ib_none),$(ib_src))
lib_src  := $(filter-out $(mpi_src) $(cuda_src) $(json_left) $(ib_left), \
  $(sort $(foreach f,$(floors),$(wildcard src/$(f)/*.c)))) \
  $(if $(cuda_archs),$(cuda_src) $(cu_src))
coll_src := $(sort $(wildcard src/collectives/*.c))
test_src := $(filter-out $(if $(cuda_archs),,tests/%_cuda.c) \
  $(if $(verbs_found),,tests/test_ib%.c),$(sort $(wildcard tests/test_*.c)))
# Plays libibverbs for the tests of the ib wire.
verbs_double := $(sort $(wildcard tests/verbs_double*.c))
# Scripts are tests if they may be executed; others are parts of tests.
test_sh  := $(sort $(shell find tests -maxdepth 1 -perm -u+x \
  '(' -name '*.sh' -o -name '*.py' ')'))
fuzz_src := $(sort $(wildcard fuzz/fuzz_*.c))
bench_src := $(sort $(wildcard bench/*.c))

obj       = $(patsubst %.c,$(B)/obj/%.o,$(patsubst %.cu,$(B)/obj/%.cu.o,$(1)))
lib      := $(B)/libcollmark.a
mpi_obj  := $(if $(mpicc),$(call obj,$(mpi_src)))
drivers  := $(patsubst src/collectives/%.c,$(B)/%_perf$(NAME_SUFFIX),$(coll_src))
tests    := $(patsubst tests/%.c,$(B)/tests/%,$(test_src))
fuzzers  := $(patsubst fuzz/%.c,$(B)/fuzz/%,$(fuzz_src))
benches  := $(patsubst bench/%.c,$(B)/bench/%,$(foreach s,$(bench_src),\
  $(if $(if $(filter %_cuda.c,$(s)),$(cuda_archs),$(mpicc)),$(s))))
every_src := $(sort $(lib_src) $(mpi_src) $(cuda_src) $(cu_src) $(json_left) $(ib_left) $(coll_src) \
  $(test_src) $(wildcard tests/test_ib*.c) $(verbs_double) $(fuzz_src) $(bench_src))
formatted := $(every_src) $(sort $(wildcard src/*/*.h tests/*.h bench/*.h fuzz/*.h \
  tests/sim/*.h tests/sim/*.c tests/sim/*.cc tests/sim/*.cu tests/ptx/*.cu tests/ptx/*.cc))

# The simulator (tests/sim) runs the kernels on the CPU: by itself, and as a CUDA runtime for the
# drivers. It needs CUDA's headers for their number types, and no compiler of NVIDIA's.
sim      := $(B)/sim
sim_why  := $(if $(call have,$(CXX)),$(if $(cuda_inc),,no cuda_runtime.h),no $(CXX))
sim_src  := $(sort $(wildcard tests/sim/cmsim*.cc))
fake_src := $(sort $(wildcard tests/sim/fakecudart*.cc))
fake_nccl := $(sort $(wildcard tests/sim/fakenccl*.c)) src/base/dtype.c
rig_src  := $(sort $(wildcard tests/sim/exec_rig*.c)) src/engine/exec_cuda.c src/engine/upload_cuda.c
sim_obj   = $(patsubst %,$(sim)/$(1)/%.o,$(basename $(2)))
# Under a sanitizer only the drivers are tested on virtual GPUs; check-sim has kernels under both.
simtest_src := $(if $(SAN)$(sim_why),,$(filter-out tests/sim/test_fake%, \
  $(sort $(wildcard tests/sim/test_*.cc tests/sim/test_*.c))))
sim_tests = $(patsubst tests/sim/%,$(sim)/$(1)/%,$(basename $(simtest_src)))
fake_tests := $(if $(SAN)$(sim_why),,$(patsubst tests/sim/%.c,$(sim)/%, \
  $(sort $(wildcard tests/sim/test_fake*.c))))
sim_libs := $(if $(sim_why),,$(sim)/libcm_simkernels.so $(sim)/libcudart.so.13 $(sim)/libnccl.so.2)

# ---- a request that cannot be met ends here, with the remedy ----------------------------------

no_build := clean format format-check lint config
ifneq ($(or $(filter-out $(no_build),$(MAKECMDGOALS)),$(if $(MAKECMDGOALS),,all)),)
ifeq ($(cjson_found)$(filter 0,$(CJSON)),)
$(error libcjson is missing: apt-get install libcjson-dev, or CJSON=0 for a build without -J)
endif
ifeq ($(filter auto 0 1 openmpi mpich,$(MPI)),)
$(error MPI=$(MPI): use auto, 0, 1, openmpi or mpich)
endif
ifeq ($(filter auto 0 1,$(CUDA)),)
$(error CUDA=$(CUDA): use auto, 0 or 1)
endif
ifeq ($(filter auto 0 1,$(IB)),)
$(error IB=$(IB): use auto, 0 or 1)
endif
ifeq ($(IB)$(verbs_found),1)
$(error IB=1 but no headers of libibverbs: apt-get install libibverbs-dev, or IB=0)
endif
ifneq ($(cuda_why),)
ifeq ($(CUDA),1)
$(error CUDA=1 but $(cuda_why): install the CUDA toolkit (or scripts/install_deps.sh cuda), \
  CUDA_HOME=folder or NVCC=path if it is elsewhere, or CUDA=0)
endif
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
.PHONY: all config check check-mpi check-slow check-asan check-tsan fuzz fuzz-run lint format format-check \
  check-sim check-ib mutants bench benches readme install clean tests FORCE
all: $(drivers) $(lib)

# A stamp holds the flags of a kind of output and changes only when they do.
stamp = $(Q)mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(strip $(1)))' | cmp -s - $@ || \
  printf '%s\n' '$(subst ','\'',$(strip $(1)))' >$@
$(B)/.compile: FORCE
	$(call stamp,$(CC) $(machine) $(cppflags) $(cflags) $(avx2) $(cjson_cflags))
$(B)/.mpi: FORCE
	$(call stamp,$(mpi_cflags))
$(B)/.cuda: FORCE
	$(call stamp,$(nvcc) $(nvcc_flags) $(cuda_cflags))
$(B)/.link: FORCE
	$(call stamp,$(CC) $(san_flags) $(LDFLAGS) $(mpi_obj) $(mpi_libs) $(cuda_libs) $(ldlibs))
$(B)/.members: FORCE
	$(call stamp,$(lib_src))

# The summary is printed when it is new; `make config` prints it in any case.
row = $(if $(2),✓,✗) $(1): $(or $(2),$(3))
summary = 'collmark: $(CC) ($(machine)) -> $(B)' \
  '  $(call row,MPI     ,$(mpicc),$(if $(filter 0,$(MPI)),off,no mpicc: threads only))' \
  '  $(call row,cJSON   ,$(cjson_found),$(if $(filter 0,$(CJSON)),off: no -J,missing))' \
  '  $(call row,CUDA    ,$(if $(cuda_archs),$(nvcc) for sm $(cuda_archs)),$(cuda_why))' \
  '  $(call row,GPU sim ,$(if $(sim_why),,$(CXX)$(if $(cu_src),$(comma) kernels of src/kernels)),$(sim_why))' \
  '  $(call row,verbs   ,$(verbs_found),$(if $(filter 0,$(IB)),off,no libibverbs headers): no ib wire)'
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
$(call obj,$(cuda_src) $(cu_src)): $(B)/.cuda

$(B)/obj/%.cu.o: %.cu | $(B)/.config
	@echo '  NVCC $<'
	$(Q)mkdir -p $(@D)
	$(Q)$(nvcc) $(nvcc_flags) -MMD -MP -MF $(@:.o=.d) -c -o $@ $< || \
	  { echo 'nvcc failed. Another host compiler: NVCCFLAGS=-ccbin=g++-NN; without CUDA: CUDA=0' >&2; \
	    exit 1; }

$(lib): $(call obj,$(lib_src)) $(B)/.members
	@echo '  AR   $@'
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

# A program is one object plus the library. A weak reference takes nothing out of an archive, so
# what is made of MPI is named on the link line, and drivers ask for the CUDA backend.
link = $(CC) $(san_flags) $(LDFLAGS) $(1) -o $@ $(filter %.o %.a,$^) $(mpi_libs) $(cuda_libs) \
  $(ldlibs)
define program
	@echo '  LD   $@'
	$(Q)mkdir -p $(@D)
	$(Q)$(call link,$(1))
endef
$(B)/%_perf$(NAME_SUFFIX): $(B)/obj/src/collectives/%.o $(mpi_obj) $(lib) $(B)/.link
	$(call program,$(if $(cuda_archs),$(addprefix -Wl$(comma)-u$(comma),cm_backend_cuda cm_engine_nccl)))
$(B)/tests/%: $(B)/obj/tests/%.o $(mpi_obj) $(lib) $(B)/.link
	$(program)
$(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/test_ib*.c)): $(call obj,$(verbs_double))
$(B)/bench/%: $(B)/obj/bench/%.o $(mpi_obj) $(lib) $(B)/.link
	$(program)
$(B)/fuzz/%: $(B)/obj/fuzz/%.o $(mpi_obj) $(lib) $(B)/.link
	@echo '  LD   $@'
	$(Q)mkdir -p $(@D)
	$(Q)$(call link,-fsanitize=fuzzer)

# ---- the simulator ---------------------------------------------------------------------------

# Kernels, tests and what they need of the engine come in flavours. What schedules the kernels, and
# what plays CUDA, has one: sanitizers see nothing of it, and its loops must not become calls of
# memset, which they would see. (gcc's warning of uninitialised values is wrong about accumulators
# whose first use is a branch.)
sim_warn  := -Wall -Wextra -Wno-unknown-pragmas -Wno-unknown-warning-option \
  -Wno-maybe-uninitialized \
  $(if $(filter 1,$(WERROR)),-Werror)
sim_flags := -O2 -g -fPIC -ffp-contract=off -pthread -Itests/sim -Isrc $(cuda_cflags) -MMD -MP \
  $(sim_warn)
sim_own   := -fno-exceptions -fno-rtti -fno-tree-loop-distribute-patterns
sim_cxx_own   := $(CXX) $(sim_own)
sim_cxx_fake  := $(CXX)
sim_cxx_plain := $(CXX)
sim_cxx_asan  := $(CXX) -fsanitize=address,undefined -fno-sanitize-recover=undefined
sim_cxx_tsan  := $(CLANGXX) -fsanitize=thread

define sim_compile
	@echo '  SIM  $@'
	$(Q)mkdir -p $(@D)
	$(Q)$(1) $(sim_flags) -c -o $@ $(if $(filter %.c,$<),-x c -std=gnu11,-x c++ -std=c++17 -DCM_SIM) $<
endef
$(B)/.sim: FORCE
	$(call stamp,$(sim_flags) $(sim_cxx_own) $(sim_cxx_plain) $(sim_cxx_asan) $(sim_cxx_tsan))

define flavour
$(sim)/$(1)/%.o: %.cc $(B)/.sim
	$$(call sim_compile,$$(sim_cxx_$(1)))
$(sim)/$(1)/%.o: %.cu $(B)/.sim
	$$(call sim_compile,$$(sim_cxx_$(1)))
$(sim)/$(1)/%.o: %.c $(B)/.sim
	$$(call sim_compile,$$(sim_cxx_$(1)))
endef
$(foreach f,own fake plain asan tsan,$(eval $(call flavour,$(f))))

# $(call sim_programs,FLAVOUR): one for each test; those of the engine have a rig.
define sim_programs
$(call sim_tests,$(1)): $(sim)/$(1)/%: $(sim)/$(1)/tests/sim/%.o $(call sim_obj,$(1),$(cu_src)) \
  $(call sim_obj,own,$(sim_src)) $(lib)
	@echo '  LD   $$@'
	$$(Q)$$(sim_cxx_$(1)) -o $$@ $$(filter %.o,$$^) $(lib) $$(ldlibs)
$(filter $(sim)/$(1)/test_exec%,$(call sim_tests,$(1))): $(call sim_obj,$(1),$(rig_src))
endef
$(foreach f,plain asan tsan,$(eval $(call sim_programs,$(f))))

$(sim)/libcm_simkernels.so: $(call sim_obj,plain,$(cu_src)) $(call sim_obj,own,$(sim_src))
	@echo '  LD   $@'
	$(Q)$(CXX) -shared -o $@ $^ -pthread
$(sim)/libfake_kernels.so: $(call sim_obj,plain,tests/sim/fake_kernels.cu) \
  $(call sim_obj,own,$(sim_src))
	@echo '  LD   $@'
	$(Q)$(CXX) -shared -o $@ $^ -pthread
$(sim)/libcudart.so.13: $(call sim_obj,fake,$(fake_src)) tests/sim/fakecudart.map
	@echo '  LD   $@'
	$(Q)$(CXX) -shared -Wl,-soname,$(@F) -Wl,--version-script=tests/sim/fakecudart.map \
	  -o $@ $(filter %.o,$^) -ldl -pthread
# It takes CUDA from whoever loads it.
$(sim)/libnccl.so.2: $(call sim_obj,plain,$(fake_nccl))
	@echo '  LD   $@'
	$(Q)$(CXX) -shared -Wl,-soname,$(@F) -o $@ $^ -lm -pthread
$(fake_tests): $(sim)/%: $(sim)/fake/tests/sim/%.o $(sim)/libcudart.so.13 | \
  $(sim)/libfake_kernels.so
	@echo '  LD   $@'
	$(Q)$(CXX) -o $@ $^ -Wl,-rpath,'$$ORIGIN' -pthread

# ---- tests -----------------------------------------------------------------------------------

tests: $(tests) $(sim_libs) $(call sim_tests,plain) $(fake_tests)
# Scripts that are tested, and tests of what a compiler is told: the same under a sanitizer.
same_sh := $(addprefix tests/test_,acceptance.py acceptance.sh acceptance_recipes.sh \
  bench_table.py collmark_run.py compare.py compare_stats.py cuda_build.sh html_look.py \
  html_report.py lint.sh models.py ptx.sh readme.sh tune_collmark.py probe_collmark.py)
run_env = BUILDDIR='$(B)' NAME_SUFFIX='$(NAME_SUFFIX)' MPIRUN='$(MPIRUN)' SAN='$(SAN)'
# The longest begin first, so that none of them runs on alone at the end.
long_sh  := $(addprefix tests/test_,virtual_gpus.sh nodes.sh mpi.sh node_failures.sh abandon.sh)
run_tests = $(run_env) scripts/run_tests.sh $(long_sh) $(tests) $(fake_tests) \
  $(call sim_tests,plain) $(filter-out $(long_sh) $(if $(SAN),$(same_sh)),$(test_sh))
check: $(drivers) tests
	@$(run_tests)
# What another MPI library may change.
check-mpi: $(drivers)
	@$(run_env) scripts/run_tests.sh $(addprefix tests/test_, \
	  abandon.sh debug.sh env_launch.sh json.py mpi.sh nodes.sh sinks.py split.sh)
check-slow: $(drivers) tests
	@COLLMARK_SLOW=1 $(run_tests)
check-asan:
	@$(MAKE) --no-print-directory SAN=address,undefined check
check-tsan:
	@$(MAKE) --no-print-directory SAN=thread check
# ThreadSanitizer of clang 14 wants addresses where they are without randomisation.
check-sim: $(call sim_tests,asan) $(if $(call have,$(CLANGXX)),$(call sim_tests,tsan))
	@unmoved="$$(setarch -R true 2>/dev/null && echo setarch -R)"; \
	  BUILDDIR='$(B)' TEST_TIMEOUT=600 $$unmoved scripts/run_tests.sh $^
	@$(if $(sim_why),echo 'skip check-sim: $(sim_why)')
	@$(if $(call have,$(CLANGXX)),,echo 'skip ThreadSanitizer: no $(CLANGXX)')

# Over the kernel's RDMA devices, which few machines have: so in a virtual one.
check-ib: $(drivers) $(if $(verbs_found),$(B)/tests/test_ib_rdma)
	@CHECK_IB=1 BUILDDIR='$(B)' NAME_SUFFIX='$(NAME_SUFFIX)' MPIRUN='$(MPIRUN)' SAN='$(SAN)' \
	  tests/test_ib_vm.sh

# Kernels broken on purpose, which the tests must notice.
mutant_src := $(rig_src) $(addprefix tests/sim/test_exec_,ends.c forms.c waits.c)
mutants: $(if $(sim_why),,$(lib) $(call sim_obj,own,$(sim_src)) \
  $(foreach f,plain tsan,$(call sim_obj,$(f),$(mutant_src))))
	@$(if $(sim_why),echo 'skip mutants: $(sim_why)',MUTANTS=1 BUILDDIR='$(B)' CXX='$(CXX)' \
	  CLANGXX='$(CLANGXX)' tests/test_mutants.sh)

fuzz:
	@$(MAKE) --no-print-directory CC=$(CLANG) SAN=fuzzer-no-link,address,undefined MPI=0 CUDA=0 \
	  BUILDDIR=build-fuzz fuzz-run
fuzz-run: $(fuzzers)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/run_fuzz.sh $(fuzzers)

benches: $(benches)
bench: $(benches)
	$(if $(mpicc),,$(error make bench compares with MPI, and none was found))
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
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/collmark/scripts/,collmark_lib recipes)
	install -m 755 scripts/collmark scripts/acceptance.sh $(DESTDIR)$(PREFIX)/share/collmark/scripts
	install -m 755 $(wildcard scripts/recipes/*.sh) $(DESTDIR)$(PREFIX)/share/collmark/scripts/recipes
	install -m 644 $(filter-out %.sh,$(wildcard scripts/recipes/*)) $(DESTDIR)$(PREFIX)/share/collmark/scripts/recipes
	install -m 644 $(wildcard scripts/collmark_lib/*.*) $(DESTDIR)$(PREFIX)/share/collmark/scripts/collmark_lib
	ln -sf ../share/collmark/scripts/collmark $(DESTDIR)$(PREFIX)/bin/collmark
	$(if $(share),install -m 644 $(share) $(DESTDIR)$(PREFIX)/share/collmark)

# Removes only folders that carry our stamp, so a wrong BUILDDIR costs nothing.
clean:
	$(Q)for d in '$(B)' build build-*; do if [ -e "$$d/.compile" ]; then rm -rf -- "$$d"; fi; done

-include $(patsubst %.o,%.d,$(call obj,$(every_src)) $(call sim_obj,own,$(sim_src)) \
  $(call sim_obj,fake,$(fake_src) $(wildcard tests/sim/test_fake*.c)) \
  $(foreach f,plain asan tsan,$(call sim_obj,$(f),$(cu_src) $(rig_src) $(simtest_src))) \
  $(call sim_obj,plain,tests/sim/fake_kernels.cu))
