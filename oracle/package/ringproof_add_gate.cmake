# ringproof_add_gate(NAME name CONTRACT contract (TARGET library | COMMAND "./k {in} {out}")
#                    [SUITE quick|full] [CASES folder])
# Adds tests to CTest: NAME.suite runs the property suite on the kernel, and with CASES, which needs
# a COMMAND, NAME.cases lets it answer every case file of the folder and judges the answers.
set(RINGPROOF_PACKAGE_FOLDER ${CMAKE_CURRENT_LIST_DIR} CACHE INTERNAL "")

function(ringproof_add_gate)
  cmake_parse_arguments(GATE "" "NAME;CONTRACT;TARGET;COMMAND;SUITE;CASES" "" ${ARGN})
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
  set(problems 1)
  if(GATE_SUITE STREQUAL "full")
    set(problems 20)
  elseif(GATE_SUITE AND NOT GATE_SUITE STREQUAL "quick")
    message(FATAL_ERROR "ringproof_add_gate: SUITE is quick or full")
  endif()
  add_test(NAME ${GATE_NAME}.suite COMMAND ringproof::program suite ${kernel}
    --contract ${GATE_CONTRACT} --count ${problems})
  set_tests_properties(${GATE_NAME}.suite PROPERTIES SKIP_RETURN_CODE 77)
  if(NOT GATE_CASES)
    return()
  endif()
  if(NOT GATE_COMMAND)
    message(FATAL_ERROR "ringproof_add_gate: CASES needs a COMMAND, which answers case files")
  endif()
  add_test(NAME ${GATE_NAME}.cases COMMAND ${CMAKE_COMMAND}
    -DPROGRAM=$<TARGET_FILE:ringproof::program> -DKERNEL=${GATE_COMMAND}
    -DCONTRACT=${GATE_CONTRACT} -DCASES=${GATE_CASES} -DOUT=${GATE_NAME}.answers
    -P ${RINGPROOF_PACKAGE_FOLDER}/judge_cases.cmake)
endfunction()
