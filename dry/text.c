/* SPDX-License-Identifier: MIT */
/* Functions of cuSPARSE that return a text. */

const char *cusparseGetErrorString(int status)
{
	return status ? "internal error" : "success";
}

const char *cusparseGetErrorName(int status)
{
	return status ? "CUSPARSE_STATUS_INTERNAL_ERROR" : "CUSPARSE_STATUS_SUCCESS";
}
