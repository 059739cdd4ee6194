# SPDX-License-Identifier: MIT

# DLOCK_CHECK_CFLAGS(VARIABLE, FLAGS)
# Put into VARIABLE, for the Makefile, those of FLAGS that the compiler takes without a complaint.
AC_DEFUN([DLOCK_CHECK_CFLAGS], [
dlock_saved_cflags=$CFLAGS
$1=
for dlock_flag in m4_normalize([$2]); do
    AC_MSG_CHECKING([whether $CC takes $dlock_flag])
    CFLAGS="$dlock_saved_cflags -Werror $dlock_flag"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([int dlock_probe;])],
        [AC_MSG_RESULT([yes])
         $1="$$1 $dlock_flag"],
        [AC_MSG_RESULT([no])])
done
CFLAGS=$dlock_saved_cflags
AC_SUBST([$1])
])

# DLOCK_HARDEN
#
# Into HARDEN_LDFLAGS what makes the tables of the linker read-only before main, and into config.h the checks of libc, unless
# a distribution asks for them itself.  They need an optimizing compiler, and hide faults from a sanitizer.
AC_DEFUN([DLOCK_HARDEN], [
dlock_saved_ldflags=$LDFLAGS
HARDEN_LDFLAGS="-Wl,-z,relro -Wl,-z,now"
LDFLAGS="$LDFLAGS $HARDEN_LDFLAGS"
AC_MSG_CHECKING([whether the linker takes $HARDEN_LDFLAGS])
AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     HARDEN_LDFLAGS=])
LDFLAGS=$dlock_saved_ldflags
AC_SUBST([HARDEN_LDFLAGS])
AH_VERBATIM([FORTIFY], [/* Let libc check the sizes of buffers. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
# define IS_SANITIZED 1
#elif defined __has_feature
# if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#  define IS_SANITIZED 1
# endif
#endif
#if defined __OPTIMIZE__ && !defined _FORTIFY_SOURCE && !defined IS_SANITIZED
# if defined __has_builtin
#  if __has_builtin(__builtin_dynamic_object_size)
#   define _FORTIFY_SOURCE 3
#  endif
# endif
# if !defined _FORTIFY_SOURCE
#  define _FORTIFY_SOURCE 2
# endif
#endif])
])

# DLOCK_DIR(WHAT, VARIABLE, DEFAULT)
# An option --with-WHAT-dir that sets VARIABLE, for the Makefile.
AC_DEFUN([DLOCK_DIR], [
AC_ARG_WITH([$1-dir],
    [AS_HELP_STRING([--with-$1-dir=DIR], [install the $1 file in DIR @<:@$3@:>@])],
    [$2=$withval], [$2='$3'])
AC_SUBST([$2])
])

# DLOCK_TEST_PROG(VARIABLE, PROGRAM)
# Find a program that only the tests need: where it is missing, make check fails, nothing else does.
AC_DEFUN([DLOCK_TEST_PROG], [
AC_PATH_PROG([$1], [$2])
AS_IF([test -z "$$1"], [AS_VAR_APPEND([TESTS_LACK], [" $2"])])
])

# DLOCK_TEST_PYTHON(MODULE)
# The same for a Python that has MODULE.  The system's own Python is asked too: one that a user
# put before it in PATH seldom sees the system's modules.
AC_DEFUN([DLOCK_TEST_PYTHON], [
AC_ARG_VAR([PYTHON], [Python 3 with the module $1, for the tests])
AC_MSG_CHECKING([for a Python 3 that has the module $1])
AS_IF([test -z "$PYTHON"],
    [for dlock_python in python3 /usr/bin/python3; do
         AS_IF([$dlock_python -c 'import $1' >/dev/null 2>&1],
             [PYTHON=`command -v $dlock_python`
              break])
     done])
AS_IF([test -n "$PYTHON"],
    [AC_MSG_RESULT([$PYTHON])],
    [AC_MSG_RESULT([no])
     AS_VAR_APPEND([TESTS_LACK], [" python3 with the module $1"])])
])

# DLOCK_STATIC_HIREDIS
#
# Put libhiredis.a into HIREDIS_LIBS where there is one, as a library that is loaded is a tenth of the time that a short
# command takes; --without-static-hiredis keeps the shared one, as distributions want it.
AC_DEFUN([DLOCK_STATIC_HIREDIS], [
AC_ARG_WITH([static-hiredis],
    [AS_HELP_STRING([--without-static-hiredis], [use the shared libhiredis even where there is a static one])],
    [], [with_static_hiredis=check])
AS_IF([test "x$with_static_hiredis" != xno],
    [AC_MSG_CHECKING([for a static libhiredis])
     dlock_saved_libs=$LIBS
     dlock_saved_cflags=$CFLAGS
     dlock_static=`AS_ECHO(["$HIREDIS_LIBS"]) | sed 's/-lhiredis/-l:libhiredis.a/'`
     LIBS="$dlock_static $LIBS"
     CFLAGS="$CFLAGS $HIREDIS_CFLAGS"
     AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <hiredis.h>]], [[redisReaderFree(redisReaderCreate());]])],
         [AC_MSG_RESULT([yes])
          HIREDIS_LIBS=$dlock_static],
         [AC_MSG_RESULT([no])
          AS_IF([test "x$with_static_hiredis" = xyes], [AC_MSG_ERROR([there is no static libhiredis])])])
     LIBS=$dlock_saved_libs
     CFLAGS=$dlock_saved_cflags])
])

# DLOCK_STATIC_BINARY
#
# With --enable-static-binary nothing is loaded at run time: hiredis, libssl and libc are part of the program, and
# src/net/static.c takes the place of src/net/libssl.c.
AC_DEFUN([DLOCK_STATIC_BINARY], [
AC_ARG_ENABLE([static-binary],
    [AS_HELP_STRING([--enable-static-binary], [link libc and OpenSSL statically, for make dist-static])])
AS_IF([test "x$enable_static_binary" = xyes],
    [PKG_CHECK_MODULES_STATIC([LIBSSL], [openssl >= 1.1.1])
     STATIC_CFLAGS=-fPIE
     STATIC_LDFLAGS=-static-pie
     AC_DEFINE([STATIC_BINARY], [1], [Whether nothing is loaded at run time])])
AC_SUBST([STATIC_CFLAGS])
AC_SUBST([STATIC_LDFLAGS])
AM_CONDITIONAL([STATIC_BINARY], [test "x$enable_static_binary" = xyes])
])

# DLOCK_SIM
# The simulation (tests/sim) runs our scripts by Redis's Lua, and puts itself in place of system calls.
AC_DEFUN([DLOCK_SIM], [
have_sim=
PKG_CHECK_MODULES([LUA], [lua5.1], [have_sim=yes],
    [PKG_CHECK_MODULES([LUA], [lua-5.1], [have_sim=yes], [:])])
LUA_CFLAGS=`AS_ECHO(["$LUA_CFLAGS"]) | sed 's/-I/-isystem /g'`
dlock_saved_ldflags=$LDFLAGS
LDFLAGS="$LDFLAGS -Wl,--wrap=close"
AC_MSG_CHECKING([whether the linker knows --wrap])
AC_LINK_IFELSE([AC_LANG_PROGRAM([int __wrap_close(int fd); int __wrap_close(int fd) { return fd; }], [])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     have_sim=])
LDFLAGS=$dlock_saved_ldflags
AM_CONDITIONAL([HAVE_SIM], [test -n "$have_sim"])
])
