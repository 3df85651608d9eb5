# Makes a man page from the help of a program:
#
#   cmake -D "COMMAND=/path/shoal;train" -D NAME=shoal-train -D VERSION=0.1.0 -D OUTPUT=shoal-train.1 -P man_page.cmake
#
# The page contains the help as printed. Its first line is the description, and its lines already
# have a readable width.
execute_process(COMMAND ${COMMAND} --help OUTPUT_VARIABLE HELP COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\\" "\\e" HELP "${HELP}")
# A line must not look like one of troff's requests.
string(REGEX REPLACE "\n([.'])" "\n\\\\&\\1" HELP "${HELP}")
string(FIND "${HELP}" "\n" END)
string(SUBSTRING "${HELP}" 0 ${END} SUMMARY)
string(SUBSTRING "${HELP}" ${END} -1 REST)
string(REGEX REPLACE "\\.$" "" SUMMARY "${SUMMARY}")
string(REGEX REPLACE "\n+$" "" REST "${REST}")
string(TOUPPER "${NAME}" TITLE)
file(WRITE "${OUTPUT}" ".TH ${TITLE} 1 \"\" \"Shoal ${VERSION}\"
.SH NAME
${NAME} \\- ${SUMMARY}
.SH DESCRIPTION
.nf${REST}
.fi
.SH SEE ALSO
.BR shoal (1),
.BR shoal-coordinator (1),
.BR shoal-ps (1),
.BR shoal-worker (1)
")
