# cpack reads this file before it packs. All files of the package get the time of the commit, so that
# a commit always gives the same package. SOURCE_DATE_EPOCH, if it is set, is the time instead.
if("$ENV{SOURCE_DATE_EPOCH}" STREQUAL "")
  execute_process(COMMAND git log -1 --format=%ct WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}
    OUTPUT_VARIABLE SECONDS OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(SECONDS)
    set(ENV{SOURCE_DATE_EPOCH} ${SECONDS})
  else()
    message(STATUS "The package gets the time of now: git knows no commit of ${CMAKE_CURRENT_LIST_DIR}. "
      "For the same package each time, set SOURCE_DATE_EPOCH.")
  endif()
endif()
