# Every target is one line; the work is in build/ and tests/lab/.
.PHONY: help demo test check mac build image lab-up lab-down lab-full bench
MAKEFLAGS += --no-print-directory

help:
	@echo 'make demo      install, build, and migrate a real cluster; as root on a fresh Debian 12'
	@echo 'make test      run all tests, and install what they need; as root on Debian 12'
	@echo 'make check     check formatting and lints, run the hermetic tests without the searches (2 minutes)'
	@echo 'make mac       check that what a laptop needs compiles for macOS; rustup installs the target (3 minutes cold)'
	@echo 'make build     build the program for Ceph'"'"'s images (glibc 2.28 and later)'
	@echo 'make image     build the image of the program for amd64 and arm64 in target/image/oci; as root on Debian'
	@echo 'make lab-up    start the lab: a real Ceph cluster on a real Kubernetes cluster (tests/lab/lab help)'
	@echo 'make lab-down  stop and remove the lab'
	@echo 'make lab-full  run the demo, then only the lab'"'"'s tests: killed with five seeds, all of frozen;'
	@echo '              a run that was interrupted goes on with the scenarios that have not passed with the same commit'
	@echo 'make bench     measure one OSD beside three usual ways, several in parallel, and the growth to 10,000 OSDs'
	@echo '              (an hour; as root on Debian 12, 25 GB of disk)'
	@echo 'To run one stage: build/stages NAME'

demo:
	@build/demo

test:
	@build/stages packages fmt binary // lab // lints growth tests advisories shell workflows chart rules // glibc install

check:
	@build/stages fmt lints quick

mac:
	@build/stages mac

build:
	@build/stages released glibc-released

image:
	@build/stages released glibc-released released-arm64 glibc-arm64 image

lab-up:
	@tests/lab/lab up

lab-down:
	@tests/lab/lab down

bench:
	@build/stages binary growth-full makespan bench

lab-full:
	@build/stages explore-full growth-full binary released glibc-released released-arm64 glibc-arm64 image demo lab-full
