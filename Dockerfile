FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier
COPY config ./config
COPY scripts ./scripts
COPY src ./src
RUN npm run build
# Fills Node's compile cache at build time, because the file system of a container may be read-only. Node keeps a cache for each
# user, so this runs as the user of the container.
RUN install -d -o 1000 -g 1000 cache state
USER 1000:1000
RUN node scripts/fill-cache.ts

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="Tidegate" \
      org.opencontainers.image.description="An HTTP reverse proxy that learns an upstream's limit, paces and shares it, and retries only what is safe to retry." \
      org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production
WORKDIR /app
COPY package.json LICENSE ./
COPY config ./config
COPY --from=build /app/dist ./dist
COPY --from=build --chown=0:0 /app/cache ./cache
# A volume that is mounted here belongs to the user of the container (state.file).
COPY --from=build --chown=1000:1000 /app/state /var/lib/tidegate

# A number, because Kubernetes can check runAsNonRoot only for a numeric user.
USER 1000:1000
# The ports of the proxy, of admin, and of telemetry if it is configured.
EXPOSE 8080 9901 9464
STOPSIGNAL SIGTERM

# The container is healthy if one of these ports of 127.0.0.1 answers /livez: that of TIDEGATE_ADMIN, 9901 (admin), 9464
# (telemetry). The check does not read the config. If the config has both listeners on other ports, override HEALTHCHECK.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["node", "-e", "const ports = [(process.env.TIDEGATE_ADMIN || ':9901').split(':').pop(), 9901, 9464]; Promise.any(ports.map(async (port) => { const { ok } = await fetch(`http://127.0.0.1:${port}/livez`); if (!ok) throw new Error(); })).catch(() => process.exit(1))"]

# Without arguments, the program exits with 2, so that a container without its config does not look like a running proxy.
ENTRYPOINT ["node", "/app/dist/main.js"]
