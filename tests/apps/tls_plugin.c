/* SPDX-License-Identifier: MIT */
/* A library with a variable of each thread. */
__thread int tls_plugin_value;
