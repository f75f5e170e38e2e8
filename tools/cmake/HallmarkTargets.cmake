# hallmark_library(NAME SOURCES ... DEPS ...) and add_suite(...): the only two ways a target is made.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(hallmark_options INTERFACE)
# -ffp-contract=off: a sum's bits are part of the contract, so the compiler may not fuse it.
target_compile_options(hallmark_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Werror;-Wno-missing-field-initializers;-ffp-contract=off>")
# GCC 12 sees an overlap in every `"literal" + std::string` (its bug 105651).
target_compile_options(hallmark_options INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict>)
# The same for device code: no fused multiply-add that the source does not write, no fast math.
target_compile_options(hallmark_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr;--Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-ffp-contract=off>")
target_include_directories(hallmark_options INTERFACE ${PROJECT_SOURCE_DIR})

# Makes static library hallmark_<NAME> with alias hallmark::<NAME>.
function(hallmark_library NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(hallmark_${NAME} STATIC ${ARG_SOURCES})
  add_library(hallmark::${NAME} ALIAS hallmark_${NAME})
  target_link_libraries(hallmark_${NAME} PUBLIC hallmark_options ${ARG_DEPS})
  # Planted faults look up which target compiles a file, to compile its patched copy alike.
  foreach(source IN LISTS ARG_SOURCES)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    set_property(GLOBAL PROPERTY "HALLMARK_OWNER:${source}" hallmark_${NAME})
  endforeach()
endfunction()

# Makes static library hallmark_kernels_<NAME> with alias hallmark::kernels_<NAME> from .cu files.
function(hallmark_kernels NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  hallmark_library(kernels_${NAME} SOURCES ${ARG_SOURCES}
    DEPS CUDA::cudart_static hallmark::base ${ARG_DEPS})
  # What ptxas says of each kernel is kept for the static contract.
  if(Python3_FOUND)
    set(launcher ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/cmake/ptxas_report.py
      ${CMAKE_CUDA_COMPILER_LAUNCHER})
    set_target_properties(hallmark_kernels_${NAME} PROPERTIES CUDA_COMPILER_LAUNCHER "${launcher}")
  endif()
  set_property(GLOBAL APPEND PROPERTY HALLMARK_KERNELS $<TARGET_OBJECTS:hallmark_kernels_${NAME}>)
endfunction()

# Adds a GoogleTest executable whose cases become ctests named <tier>.<area>.<Suite>.<case>.
#   add_suite(NAME AREA <area> TIER unit|prop|conf|fuzz|receipt|bench|lint NEED cpu|gpu
#             SOURCES ... DEPS ... [LABELS ...] [TIMEOUT seconds])
# Labels are passed as "LABELS;a;LABELS;b": CMake 3.25 keeps only the first of a quoted list.
function(add_suite NAME)
  if(NOT HALLMARK_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "AREA;TIER;NEED;TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE hallmark_options ${ARG_DEPS} hallmark_test_main
    GTest::gtest rapidcheck)
  # What a suite tests is in libraries, which are optimized; optimizing assertions takes as long as
  # parsing them. Properties and conformance cases go over many values, so get a little.
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set(level -O0)
    if(ARG_TIER MATCHES "^(prop|conf|bench)$")
      set(level -O1)
    endif()
    target_compile_options(${NAME} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${level}>)
  endif()
  set(properties "TIMEOUT;${ARG_TIMEOUT};LABELS;${ARG_TIER};LABELS;${ARG_NEED}")
  foreach(label IN LISTS ARG_LABELS)
    string(APPEND properties ";LABELS;${label}")
  endforeach()
  if(ARG_NEED STREQUAL "gpu")
    set(mode PRE_TEST)
    string(APPEND properties ";RESOURCE_LOCK;gpu")
  else()
    set(mode POST_BUILD)
  endif()
  # The label lint demands a test of every suite on this list: an empty suite registers nothing.
  set_property(GLOBAL APPEND PROPERTY HALLMARK_SUITES ${NAME})
  gtest_discover_tests(${NAME} TEST_PREFIX "${ARG_TIER}.${ARG_AREA}." DISCOVERY_MODE ${mode}
    NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

function(hallmark_report_backends)
  if(HALLMARK_HAS_CUDA)
    message(STATUS "Hallmark backends: cpu, cuda (${CMAKE_CUDA_ARCHITECTURES})")
  else()
    message(STATUS "Hallmark backends: cpu")
  endif()
endfunction()

# Writes the list of suites for the label lint; called when every folder has been read.
function(hallmark_write_suites)
  get_property(suites GLOBAL PROPERTY HALLMARK_SUITES)
  list(JOIN suites "\n" text)
  file(WRITE ${PROJECT_BINARY_DIR}/suites.txt "${text}\n")
endfunction()
