# ringproof_add_gate(NAME name CONTRACT contract (TARGET library | COMMAND "./k {in} {out}")
#                    [SUITE quick|full] [CASES folder]
#                    [PROMISE deterministic|batch-invariant|none] [TIMEOUT seconds]
#                    [REQUIRE features])
# Adds tests to CTest:
#   NAME.laws        the property suite on the kernel: 1 problem a law with quick, 20 with full
#   NAME.generate    writes the problems of `ringproof gen quick` or `full` into the build folder
#   NAME.cases       the kernel answers them, and the judge decides
#   NAME.own_cases   with CASES: the same on the case files of a folder of yours
# PROMISE, TIMEOUT and REQUIRE are the options of `ringproof suite` with these names: none for
# kernels that add in no fixed order, seconds a call, and what must not be skipped.
# A test is skipped where the kernel supports nothing of what it asks.
set(RINGPROOF_PACKAGE_FOLDER ${CMAKE_CURRENT_LIST_DIR} CACHE INTERNAL "")

function(ringproof_add_gate)
  cmake_parse_arguments(GATE ""
    "NAME;CONTRACT;TARGET;COMMAND;SUITE;CASES;PROMISE;TIMEOUT;REQUIRE" "" ${ARGN})
  if(NOT GATE_NAME OR NOT GATE_CONTRACT OR GATE_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ringproof_add_gate: NAME and CONTRACT are needed, and nothing unknown")
  endif()
  if(GATE_TARGET AND NOT GATE_COMMAND)
    set(kernel --so $<TARGET_FILE:${GATE_TARGET}>)
  elseif(GATE_COMMAND AND NOT GATE_TARGET)
    set(kernel --command ${GATE_COMMAND})
  else()
    message(FATAL_ERROR "ringproof_add_gate: one of TARGET and COMMAND is needed")
  endif()
  if(NOT GATE_SUITE)
    set(GATE_SUITE quick)
  elseif(NOT GATE_SUITE MATCHES "^(quick|full)$")
    message(FATAL_ERROR "ringproof_add_gate: SUITE is quick or full")
  endif()
  set(problems 1)
  if(GATE_SUITE STREQUAL "full")
    set(problems 20)
  endif()
  if(GATE_CASES)
    get_filename_component(own ${GATE_CASES} ABSOLUTE)
    if(NOT EXISTS ${own})
      message(FATAL_ERROR "ringproof_add_gate: CASES ${GATE_CASES} does not exist")
    endif()
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${GATE_NAME}.gate)
  set(words ringproof::program suite ${kernel} --contract ${GATE_CONTRACT}
    --failures ${folder}/failures)
  foreach(option PROMISE TIMEOUT REQUIRE)
    if(DEFINED GATE_${option})
      string(TOLOWER ${option} word)
      list(APPEND words --${word} ${GATE_${option}})
    endif()
  endforeach()
  add_test(NAME ${GATE_NAME}.laws COMMAND ${words} --count ${problems})
  add_test(NAME ${GATE_NAME}.generate COMMAND ${CMAKE_COMMAND}
    -DPROGRAM=$<TARGET_FILE:ringproof::program> -DSUITE=${GATE_SUITE} -DOUT=${folder}/cases
    -P ${RINGPROOF_PACKAGE_FOLDER}/generate_cases.cmake)
  add_test(NAME ${GATE_NAME}.cases COMMAND ${words} --cases ${folder}/cases)
  set_tests_properties(${GATE_NAME}.generate PROPERTIES FIXTURES_SETUP ${GATE_NAME}.gate)
  set_tests_properties(${GATE_NAME}.cases PROPERTIES FIXTURES_REQUIRED ${GATE_NAME}.gate)
  set(judging ${GATE_NAME}.laws ${GATE_NAME}.cases)
  if(GATE_CASES)
    add_test(NAME ${GATE_NAME}.own_cases COMMAND ${words} --cases ${own})
    list(APPEND judging ${GATE_NAME}.own_cases)
  endif()
  set_tests_properties(${judging} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
