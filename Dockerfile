# Images of the commands, with nothing else in them and no root:
#
#	docker build --target zktest -t zktest . && docker run --rm -p 127.0.0.1:2181:2181 zktest
#	docker build --target zklock -t zklock . && docker run --rm zklock --help
#
# For "zklock run", an image needs the programs to be run: COPY --from=zklock /zklock /usr/bin/
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
ENV CGO_ENABLED=0
RUN go build -trimpath -ldflags="-s -w" -o /out/zktest ./cmd/zktest && \
    cd cmd/zklock && go build -trimpath -ldflags="-s -w" -o /out/zklock .

FROM scratch AS zktest
COPY --from=build /out/zktest /zktest
USER 65532:65532
EXPOSE 2181
ENTRYPOINT ["/zktest"]
CMD ["-listen", "0.0.0.0:2181", "-public"]

FROM scratch AS zklock
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/zklock /zklock
USER 65532:65532
ENTRYPOINT ["/zklock"]
