# One chapter of the tutorials: its program, its exercise, and their tests.
#   ringproof_chapter(NUMBER 03 SOURCES main.cpp [LIBRARIES l ...])
# in tutorials/03_name/CMakeLists.txt makes
#   tutorial-03           the program; a test expects 0 within ten seconds of a processor
#   tutorial-03-solution  exercise/solution.cpp; a test expects that it passes its own check
#   tutorial-03-stub      the same with its gaps emptied (stub.cmake); a test expects that it fails
#   tutorial-03-answer    the reader's own file, which `./run exercise 03` writes; not part of `all`
add_custom_target(tutorials)

function(ringproof_chapter)
  cmake_parse_arguments(C "" "NUMBER" "SOURCES;LIBRARIES" ${ARGN})
  set(program tutorial-${C_NUMBER})
  set(solution ${CMAKE_CURRENT_SOURCE_DIR}/exercise/solution.cpp)
  set(stub ${CMAKE_CURRENT_BINARY_DIR}/stub.cpp)
  set(answer ${PROJECT_BINARY_DIR}/answers/${C_NUMBER}.cpp)
  set(writer ${PROJECT_SOURCE_DIR}/tutorials/support/stub.cmake)
  add_custom_command(OUTPUT ${stub}
    COMMAND ${CMAKE_COMMAND} -DSOLUTION=${solution} -DSTUB=${stub} -P ${writer}
    DEPENDS ${solution} ${writer} VERBATIM)
  set_source_files_properties(${answer} PROPERTIES GENERATED TRUE) # by `./run exercise`

  add_executable(${program} ${C_SOURCES})
  add_executable(${program}-solution ${solution})
  add_executable(${program}-stub ${stub})
  add_executable(${program}-answer EXCLUDE_FROM_ALL ${answer})
  foreach(target ${program} ${program}-solution ${program}-stub ${program}-answer)
    target_link_libraries(${target}
      PRIVATE ringproof_flags ringproof_reference fmt::fmt ${C_LIBRARIES})
  endforeach()
  # An emptied gap leaves parameters without use.
  target_compile_options(${program}-stub PRIVATE -Wno-unused)
  target_compile_options(${program}-answer PRIVATE -Wno-unused -O0) # compiled often, run once
  add_dependencies(tutorials ${program} ${program}-solution ${program}-stub)

  if(RINGPROOF_TESTS)
    add_test(NAME tutorial_${C_NUMBER}
      COMMAND sh -c "ulimit -t 10 && exec \"$0\"" $<TARGET_FILE:${program}>)
    add_test(NAME tutorial_${C_NUMBER}_solution COMMAND ${program}-solution)
    add_test(NAME tutorial_${C_NUMBER}_stub COMMAND ${program}-stub)
    # A crash or a stub that passes prints no such line.
    set_tests_properties(tutorial_${C_NUMBER}_stub PROPERTIES
      PASS_REGULAR_EXPRESSION "exercise ${C_NUMBER}: [1-9][0-9]* of [0-9]+ checks fail")
  endif()
endfunction()
