#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TILEC_SUPPORT */
