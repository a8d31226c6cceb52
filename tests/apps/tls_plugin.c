/* SPDX-License-Identifier: MIT */
/* A library with a thread-local variable. */
__thread int tls_plugin_value;
