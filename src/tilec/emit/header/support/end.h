#endif /* TILEC_SUPPORT */
