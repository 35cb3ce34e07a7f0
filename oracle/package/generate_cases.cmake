# Writes the problems of a generated suite anew: the script of ringproof_add_gate's NAME.generate.
file(REMOVE_RECURSE ${OUT})
get_filename_component(parent ${OUT} DIRECTORY)
file(MAKE_DIRECTORY ${parent})
execute_process(COMMAND ${PROGRAM} gen ${SUITE} -o ${OUT} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "ringproof gen ${SUITE} ended with ${status}")
endif()
