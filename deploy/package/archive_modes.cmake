# cpack runs this file after it has packed. The members of a .deb get the modes that the umask
# leaves; ar packs them again with mode 0644 and no time.
set(MEMBERS debian-binary control.tar.gz data.tar.gz)
foreach(PACKAGE ${CPACK_PACKAGE_FILES})
  get_filename_component(FOLDER ${PACKAGE} DIRECTORY)
  execute_process(COMMAND ar x ${PACKAGE} ${MEMBERS} WORKING_DIRECTORY ${FOLDER} COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE ${PACKAGE})
  execute_process(COMMAND ar rcDS ${PACKAGE} ${MEMBERS} WORKING_DIRECTORY ${FOLDER} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
